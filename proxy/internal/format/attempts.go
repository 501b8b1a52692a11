package format

import (
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/stream"
)

// attemptCommands list the hosts that a stream has tried. As in Envoy, a request's list is of its last attempt, if that got a
// connection; a TCP session's is of all its attempts.
var attemptCommands = map[string]command{
	"UPSTREAM_HOSTS_ATTEMPTED": attempted(func(dst []byte, t *stream.Tried) []byte { return t.Host.Append(dst) }),
	"UPSTREAM_HOSTS_ATTEMPTED_WITHOUT_PORT": attempted(func(dst []byte, t *stream.Tried) []byte {
		return t.Host.AppendIP(dst)
	}),
	"UPSTREAM_HOST_NAMES_ATTEMPTED": attempted(func(dst []byte, t *stream.Tried) []byte {
		dst, _ = appendHostName(dst, t.HostName, t.Host)
		return dst
	}),
	"UPSTREAM_HOST_NAMES_ATTEMPTED_WITHOUT_PORT": attempted(func(dst []byte, t *stream.Tried) []byte {
		dst, _ = appendBareHostName(dst, t.HostName, t.Host)
		return dst
	}),
	"UPSTREAM_CONNECTION_IDS_ATTEMPTED": {bare, op(func(dst []byte, c *Context) ([]byte, bool) {
		id := c.Info.Upstream.ConnID
		if id == 0 {
			return dst, false
		}
		return strconv.AppendUint(dst, id, 10), true
	})},
}

// attempted is a list of what one gives for each attempt.
func attempted(one func(dst []byte, t *stream.Tried) []byte) command {
	return command{bare, op(func(dst []byte, c *Context) ([]byte, bool) {
		u := &c.Info.Upstream
		for i := range u.Tried {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = one(dst, &u.Tried[i])
		}
		if u.ConnID == 0 {
			return dst, len(u.Tried) > 0
		}
		if len(u.Tried) > 0 {
			dst = append(dst, ',')
		}
		return one(dst, &stream.Tried{Host: u.Host, HostName: u.HostName}), true
	})}
}
