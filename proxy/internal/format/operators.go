package format

import (
	"maps"
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// commands is every operator but COALESCE, which is made of others.
var commands = merge(infoCommands, headerCommands, attemptCommands, timeCommands, tlsCommands, metadataCommands)

// notYet are operators of Envoy whose facts the engine does not collect. They are refused, so that no log lies.
var notYet = set(
	"BYTES_RETRANSMITTED", "CEL", "DOWNSTREAM_CX_RTT", "DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED",
	"DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT", "DOWNSTREAM_PEER_OTHERNAME_SAN", "DOWNSTREAM_LOCAL_OTHERNAME_SAN",
	"PACKETS_RETRANSMITTED", "ROUTE_RESOLUTION_COUNT", "ROUTE_RESOLUTION_TIME_US",
	"UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED", "UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT",
)

func merge(tables ...map[string]command) map[string]command {
	out := map[string]command{}
	for _, t := range tables {
		maps.Copy(out, t)
	}
	return out
}

func set(names ...string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

type appendFunc = func(dst []byte, c *Context) ([]byte, bool)

// op is the builder of a command whose parameters, if it may have any, say nothing.
func op(f appendFunc) func(*builder) (*operator, error) {
	return func(*builder) (*operator, error) { return &operator{append: f}, nil }
}

// text is a command without parameters that gives a string; an empty one is no value.
func text(get func(c *Context) string) command {
	return command{bare, op(func(dst []byte, c *Context) ([]byte, bool) {
		s := get(c)
		return append(dst, s...), s != ""
	})}
}

// mayBeEmpty is text for strings that may be empty.
func mayBeEmpty(get func(c *Context) string) command {
	return command{bare, op(func(dst []byte, c *Context) ([]byte, bool) { return append(dst, get(c)...), true })}
}

// reason is text with spaces shown as "_", so that it stays one word of a line.
func reason(get func(c *Context) string) command {
	return command{bare, op(func(dst []byte, c *Context) ([]byte, bool) { return appendWord(dst, get(c)) })}
}

func appendWord(dst []byte, s string) ([]byte, bool) {
	start := len(dst)
	dst = append(dst, s...)
	for i := start; i < len(dst); i++ {
		if isSpace(dst[i]) {
			dst[i] = '_'
		}
	}
	return dst, s != ""
}

func isSpace(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' }

// count is a command without parameters that gives a number.
func count(get func(c *Context) uint64) command {
	return command{bare, func(*builder) (*operator, error) {
		return &operator{number: true, append: func(dst []byte, c *Context) ([]byte, bool) {
			return strconv.AppendUint(dst, get(c), 10), true
		}}, nil
	}}
}

// connOf says which connection of the stream an operator is about.
type connOf func(c *Context) *network.ConnInfo

func downstream(c *Context) *network.ConnInfo { return c.Info.Conn }
func upstream(c *Context) *network.ConnInfo   { return c.Info.Upstream.Conn }

// connText is text about a connection.
func connText(conn connOf, get func(n *network.ConnInfo) string) command {
	return text(func(c *Context) string {
		if n := conn(c); n != nil {
			return get(n)
		}
		return ""
	})
}

func connReason(conn connOf, get func(n *network.ConnInfo) string) command {
	return reason(func(c *Context) string {
		if n := conn(c); n != nil {
			return get(n)
		}
		return ""
	})
}

// addressOf gives an address of the stream; the zero value is none.
type addressOf func(c *Context) network.Address

func connAddress(get func(n *network.ConnInfo) network.Address) addressOf {
	return func(c *Context) (a network.Address) {
		if n := c.Info.Conn; n != nil {
			a = get(n)
		}
		return a
	}
}

func address(get addressOf) command {
	return command{bare, op(func(dst []byte, c *Context) ([]byte, bool) {
		a := get(c)
		return a.Append(dst), a.Valid()
	})}
}

// addressIP is an address without its port. Envoy takes parameters here (a mask in other commands) and ignores them.
func addressIP(get addressOf) command {
	return command{params, op(func(dst []byte, c *Context) ([]byte, bool) {
		a := get(c)
		return a.AppendIP(dst), a.Valid()
	})}
}

func addressPort(get addressOf) command {
	return command{bare, func(*builder) (*operator, error) {
		return &operator{number: true, append: func(dst []byte, c *Context) ([]byte, bool) {
			a := get(c)
			if !a.IP.IsValid() {
				return dst, false
			}
			return a.AppendPort(dst), true
		}}, nil
	}}
}

// endpointID is what internal addresses have besides their name; our addresses have none.
func endpointID(get addressOf) command {
	return command{bare, op(func(dst []byte, c *Context) ([]byte, bool) { return dst, get(c).Valid() })}
}
