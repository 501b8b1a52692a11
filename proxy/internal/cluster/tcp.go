package cluster

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// DialTCP opens a connection to h that belongs to the caller alone (tcp_proxy): within the breakers, with the connect timeout and
// all stats of connections. hd gets its events; a failure comes as OnClose with Failed, see pool.TCPConn.Failure. A nil result
// means that a breaker is open: reason is ResetOverflow.
func (c *Cluster) DialTCP(w *event.Worker, h *host.Host, prio int, hd conn.Handler) (t *pool.TCPConn, reason http.ResetReason) {
	t, reason = pool.DialTCP(w, &c.settings, h, pool.Priority(prio), hd)
	if t != nil && c.opts.CloseOnHealthFailure && c.checks != nil {
		l := c.local(w)
		if l.tcp == nil {
			l.tcp = make(map[*pool.TCPConn]struct{})
		}
		l.tcp[t] = struct{}{}
		t.Owner = l
	}
	return t, reason
}

// OnTCPClose forgets a connection of tcp_proxy.
func (l *local) OnTCPClose(t *pool.TCPConn) { delete(l.tcp, t) }
