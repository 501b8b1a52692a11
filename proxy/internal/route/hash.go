package route

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// HashPolicy computes a request's hash for consistent hashing, from all of its parts that apply.
type HashPolicy struct{ methods []hashMethod }

// hashMethod is one hash policy. ok is false if it does not apply to the request.
type hashMethod struct {
	hash     func(r *Request) (h uint64, ok bool)
	terminal bool
}

// Hash returns the hash of a request. ok is false if no policy applies. Cookies that were made for it are in r.SetCookies.
func (p *HashPolicy) Hash(r *Request) (hash uint64, ok bool) {
	for i := range p.methods {
		m := &p.methods[i]
		if h, applies := m.hash(r); applies {
			if ok {
				// Turned, two equal parts do not cancel each other out.
				hash = hash<<1 | hash>>63
			}
			hash ^= h
			ok = true
		}
		if m.terminal && ok {
			break
		}
	}
	return hash, ok
}

func (c *compiler) hashPolicy(list []*routev3.RouteAction_HashPolicy) (*HashPolicy, error) {
	if len(list) == 0 {
		return nil, nil
	}
	p := &HashPolicy{}
	var errs config.Errors
	for i, x := range list {
		m := hashMethod{terminal: x.Terminal}
		switch s := x.PolicySpecifier.(type) {
		case *routev3.RouteAction_HashPolicy_Header_:
			rw, err := c.rewriteRegex(s.Header.RegexRewrite)
			errs.Collect(fmt.Sprintf("[%d].header.regex_rewrite", i), err)
			m.hash = hashHeader(strings.ToLower(s.Header.HeaderName), rw)
		case *routev3.RouteAction_HashPolicy_Cookie_:
			m.hash = hashCookie(s.Cookie)
		case *routev3.RouteAction_HashPolicy_ConnectionProperties_:
			if !s.ConnectionProperties.SourceIp {
				continue
			}
			m.hash = hashSource
		case *routev3.RouteAction_HashPolicy_QueryParameter_:
			name := s.QueryParameter.Name
			m.hash = func(r *Request) (uint64, bool) {
				v, ok := queryParam(r.Headers.Get(http.Path), name)
				return xxhash.Sum64String(v), ok
			}
		case *routev3.RouteAction_HashPolicy_FilterState_:
			key := s.FilterState.Key
			m.hash = func(r *Request) (uint64, bool) {
				v, ok := r.state(key)
				return xxhash.Sum64String(v), ok
			}
		default:
			continue
		}
		p.methods = append(p.methods, m)
	}
	return p, errs.Err()
}

// hashHeader hashes the values of a header, in any order.
func hashHeader(name string, rw *RegexRewrite) func(r *Request) (uint64, bool) {
	id := http.Lookup(name)
	return func(r *Request) (uint64, bool) {
		first, found := "", 0
		for i := range r.Headers.All() {
			f := &r.Headers.All()[i]
			if f.ID == id && (id != http.None || f.Name == name) {
				if found == 0 {
					first = f.Value
				}
				found++
			}
		}
		if found == 0 {
			return 0, false
		}
		if found == 1 {
			if rw != nil {
				first = rw.Replace(first)
			}
			return xxhash.Sum64String(first), true
		}
		values := r.Headers.Values(make([]string, 0, found), name)
		if rw != nil {
			for i := range values {
				values[i] = rw.Replace(values[i])
			}
		}
		sort.Strings(values)
		var h uint64
		for _, v := range values {
			d := xxhash.NewWithSeed(h)
			_, _ = d.WriteString(v)
			h = d.Sum64()
		}
		return h, true
	}
}

// hashCookie hashes a cookie. One that is not there is made, if it may be: it is the same for all requests of a connection.
func hashCookie(c *routev3.RouteAction_HashPolicy_Cookie) func(r *Request) (uint64, bool) {
	tail := ""
	if ttl := c.Ttl.AsDuration(); ttl != 0 {
		tail += "; Max-Age=" + strconv.FormatInt(int64(ttl/time.Second), 10)
	}
	if c.Path != "" {
		tail += "; Path=" + c.Path
	}
	for _, a := range c.Attributes {
		tail += "; " + a.Name
		if a.Value != "" {
			tail += "=" + a.Value
		}
	}
	tail += "; HttpOnly"
	return func(r *Request) (uint64, bool) {
		if v, _ := r.Headers.Cookie(c.Name); v != "" {
			return xxhash.Sum64String(v), true
		}
		if c.Ttl == nil || r.Info == nil || r.Info.Conn == nil {
			return 0, false
		}
		b := remoteOf(r).Append(nil)
		b = r.Info.Conn.Local.Append(b)
		v := hex16(xxhash.Sum64(b))
		r.SetCookies = append(r.SetCookies, c.Name+`="`+v+`"`+tail)
		return xxhash.Sum64String(v), true
	}
}

func hex16(n uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := 15; i >= 0; i-- {
		b[i] = digits[n&15]
		n >>= 4
	}
	return string(b[:])
}

// remoteOf returns the client of a request.
func remoteOf(r *Request) network.Address {
	if r.Info.Remote.Valid() {
		return r.Info.Remote
	}
	return r.Info.Conn.Remote
}

func hashSource(r *Request) (uint64, bool) {
	if r.Info == nil || r.Info.Conn == nil {
		return 0, false
	}
	a := remoteOf(r)
	if !a.IP.IsValid() {
		return 0, false
	}
	var b [64]byte
	return xxhash.Sum64(a.AppendIP(b[:0])), true
}

// queryParam returns the value of a query parameter, as it is written.
func queryParam(path, name string) (string, bool) {
	_, q, _ := strings.Cut(path, "?")
	for q != "" {
		pair, rest, _ := strings.Cut(q, "&")
		q = rest
		if k, v, _ := strings.Cut(pair, "="); k == name {
			return v, true
		}
	}
	return "", false
}
