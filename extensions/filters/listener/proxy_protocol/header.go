package proxy_protocol //nolint:revive // Envoy's name

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"
)

// header is what a PROXY header says. Its addresses are invalid if it says nothing (UNKNOWN, LOCAL).
type header struct {
	source, destination netip.AddrPort
	tlvs                []byte
	// size is how many bytes it has on the wire.
	size int
}

// result is what is known after the bytes so far.
type result uint8

const (
	more result = iota
	found
	// endless: the line of version 1 is longer than any header.
	endless
	// bad: there is a header, but it cannot be used.
	bad
)

const (
	signature1 = "PROXY"
	signature2 = "\r\n\r\n\x00\r\nQUIT\n"
	// maxLine is the longest header of version 1, its line end included.
	maxLine = 107
	// fixed2 is the part of version 2 that every header has.
	fixed2 = len(signature2) + 4
	// maxHeader bounds a whole header of version 2.
	maxHeader = fixed2 + 1<<16 - 1
)

// version tells which version's header b begins with, or may become: 0 is none.
func version(b []byte) (v int, sure bool) {
	for i, sig := range []string{signature1, signature2} {
		k := min(len(b), len(sig))
		if string(b[:k]) == sig[:k] {
			return i + 1, k == len(sig)
		}
	}
	return 0, true
}

// parse1 reads a header of version 1: a line of text.
func (h *header) parse1(b []byte) result {
	end := bytes.Index(b[:min(len(b), maxLine)], []byte("\r\n"))
	if end < 0 {
		if len(b) >= maxLine {
			return endless
		}
		return more
	}
	h.size = end + 2
	parts := strings.Split(string(b[:end]), " ")
	if parts[0] != signature1 {
		return bad
	}
	if len(parts) >= 2 && parts[1] == "UNKNOWN" {
		return found
	}
	if len(parts) != 6 {
		return bad
	}
	source, ok1 := endpoint(parts[2], parts[4])
	destination, ok2 := endpoint(parts[3], parts[5])
	if !ok1 || !ok2 {
		return bad
	}
	is4 := parts[1] == "TCP4"
	if !is4 && parts[1] != "TCP6" || source.Addr().Is4() != is4 || destination.Addr().Is4() != is4 {
		return bad
	}
	h.source, h.destination = source, destination
	return found
}

func endpoint(ip, port string) (netip.AddrPort, bool) {
	a, err := netip.ParseAddr(ip)
	if err != nil || a.Zone() != "" {
		return netip.AddrPort{}, false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(a, uint16(n)), true
}

// parse2 reads a header of version 2: signature, version and command, family and transport, length, addresses, TLVs.
func (h *header) parse2(b []byte) result {
	if len(b) < fixed2 {
		return more
	}
	command, family := b[12], b[13]
	size := int(binary.BigEndian.Uint16(b[14:]))
	if command>>4 != 2 {
		return bad
	}
	local := command&0xf == 0
	if !local && command&0xf != 1 {
		return bad
	}
	addresses := 0
	if !local {
		if t := family & 0xf; t != 1 && t != 2 { // stream, datagram
			return bad
		}
		switch family >> 4 {
		case 1:
			addresses = 12
		case 2:
			addresses = 36
		default: // unspecified or Unix: there is no way to use it
			return bad
		}
		if size < addresses {
			return bad
		}
	}
	if len(b) < fixed2+size {
		return more
	}
	h.size = fixed2 + size
	if local {
		return found
	}
	body := b[fixed2 : fixed2+size]
	h.addresses2(body[:addresses])
	h.tlvs = body[addresses:]
	if !valid(h.tlvs) {
		return bad
	}
	return found
}

func (h *header) addresses2(b []byte) {
	k := (len(b) - 4) / 2
	source, _ := netip.AddrFromSlice(b[:k])
	destination, _ := netip.AddrFromSlice(b[k : 2*k])
	ports := b[2*k:]
	h.source = netip.AddrPortFrom(source, binary.BigEndian.Uint16(ports))
	h.destination = netip.AddrPortFrom(destination, binary.BigEndian.Uint16(ports[2:]))
}

// valid tells whether b is a list of whole TLVs.
func valid(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 3 {
			return false
		}
		n := 3 + int(binary.BigEndian.Uint16(b[1:]))
		if len(b) < n {
			return false
		}
		b = b[n:]
	}
	return true
}

// each calls f for all TLVs.
func (h *header) each(f func(kind byte, value []byte)) {
	for b := h.tlvs; len(b) >= 3; {
		n := 3 + int(binary.BigEndian.Uint16(b[1:]))
		f(b[0], b[3:n])
		b = b[n:]
	}
}
