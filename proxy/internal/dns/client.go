package dns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// Options say whom to ask, and how.
type Options struct {
	// Servers are asked one after the other; none: those of /etc/resolv.conf.
	Servers []netip.AddrPort
	// TCP asks over TCP only.
	TCP bool
	// NoSearch does not complete names by the search list of /etc/resolv.conf, and NoHosts leaves /etc/hosts out.
	NoSearch, NoHosts bool
	// Timeout is for one try, Tries how often the servers are gone through; 0: as /etc/resolv.conf says, or 5 s and 2.
	Timeout time.Duration
	Tries   int
}

// errServer: the server cannot answer.
var errServer = errors.New("server failure")

// client asks servers. It is used by many goroutines at once.
type client struct{ o Options }

// lookup asks for one name and type, completing the name by the search list.
func (c *client) lookup(ctx context.Context, conf *resolvConf, name string, typ uint16) (list []Address, err error) {
	err = ErrNotFound
	for _, full := range conf.names(name) {
		list, e := c.ask(ctx, conf, full, typ)
		switch {
		case e == nil:
			return list, nil
		case !errors.Is(e, ErrNotFound):
			err = e
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, err
}

// ask asks the servers in turn until one answers.
func (c *client) ask(ctx context.Context, conf *resolvConf, name string, typ uint16) (list []Address, err error) {
	err = errServer
	for range conf.tries {
		for _, server := range conf.servers {
			a, e := c.query(ctx, conf, server, name, typ)
			switch {
			case e != nil:
				err = e
			case a.rcode == rcodeNotFound, a.rcode == rcodeSuccess && len(a.addresses) == 0:
				return nil, ErrNotFound
			case a.rcode == rcodeSuccess:
				return a.addresses, nil
			default:
				err = errServer
			}
			if ctx.Err() != nil || errors.Is(e, errName) {
				return nil, err
			}
		}
	}
	return nil, err
}

// query asks one server, over TCP if the answer is too long for UDP.
func (c *client) query(ctx context.Context, conf *resolvConf, server netip.AddrPort, name string, typ uint16) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, conf.timeout)
	defer cancel()
	if !c.o.TCP {
		a, err = exchange(ctx, "udp", server, name, typ)
		if err != nil || !a.truncated {
			return a, err
		}
	}
	return exchange(ctx, "tcp", server, name, typ)
}

func exchange(ctx context.Context, network string, server netip.AddrPort, name string, typ uint16) (a answer, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, server.String())
	if err != nil {
		return a, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var seed [2]byte
	_, _ = rand.Read(seed[:])
	id := binary.BigEndian.Uint16(seed[:])
	q, err := appendQuestion(nil, id, name, typ)
	if err != nil {
		return a, err
	}
	if network == "tcp" {
		return exchangeTCP(conn, q, id, name, typ)
	}
	if _, err = conn.Write(q); err != nil {
		return a, err
	}
	buf := make([]byte, maxUDP)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return a, err
		}
		// What belongs to another question, or to nobody, does not end the wait for the answer.
		if a, err = parseAnswer(buf[:n], id, name, typ); err == nil {
			return a, nil
		}
	}
}

func exchangeTCP(conn net.Conn, q []byte, id uint16, name string, typ uint16) (a answer, err error) {
	if _, err = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
		return a, err
	}
	var size [2]byte
	if _, err = io.ReadFull(conn, size[:]); err != nil {
		return a, err
	}
	buf := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err = io.ReadFull(conn, buf); err != nil {
		return a, err
	}
	a, err = parseAnswer(buf, id, name, typ)
	if err == nil && a.truncated {
		err = errMessage
	}
	return a, err
}

// resolve asks for the addresses of a family, in its order.
func (c *client) resolve(ctx context.Context, name string, family Family) Result {
	conf := readResolvConf(&c.o)
	if !c.o.NoHosts {
		if list := readHosts(name, family); len(list) > 0 {
			return Result{Addresses: list}
		}
	}
	var all []Address
	err := error(ErrNotFound)
	for _, typ := range family.types() {
		list, e := c.lookup(ctx, conf, name, typ)
		all = append(all, list...)
		if e != nil && !errors.Is(e, ErrNotFound) {
			err = e
		}
		if len(all) > 0 && family != All {
			break
		}
	}
	if len(all) == 0 {
		return Result{Err: err}
	}
	return Result{Addresses: all}
}

// types are the record types of a family in the order in which they are asked for.
func (f Family) types() []uint16 {
	switch f {
	case V4Only:
		return []uint16{typeA}
	case V6Only:
		return []uint16{typeAAAA}
	case V4Preferred:
		return []uint16{typeA, typeAAAA}
	}
	return []uint16{typeAAAA, typeA}
}
