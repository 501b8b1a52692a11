package hcm

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// respHop are response headers that end at this hop. Upgrade responses keep connection and upgrade.
var (
	respHop        = http.MakeSet(http.Connection, http.Upgrade, http.KeepAlive, http.ProxyConnection, http.TransferEncoding)
	respHopUpgrade = http.MakeSet(http.KeepAlive, http.ProxyConnection, http.TransferEncoding)
)

func (s *Stream) send100() {
	h := s.replyHead()
	h.AddConst(http.Status, "100")
	s.count(100)
	s.enc.Encode1xx(h)
	h.Init(&s.arena)
}

// Send1xx sends an informational head: a 100, if the upstream's is wanted.
func (s *Stream) Send1xx(h *http.HeaderMap) {
	if h.StatusCode() != 100 || !s.h.cfg.Proxy100Continue {
		return // Envoy's codecs pass no other ones on
	}
	h.RemoveSet(&respHop)
	s.count(100)
	s.enc.Encode1xx(h)
}

// SendHeaders sends the response's head: the last rules, then the codec.
func (s *Stream) SendHeaders(h *http.HeaderMap, end bool) {
	cfg := s.h.cfg
	w := s.h.w
	s.touch()
	s.table = nil // nobody asks for another route now
	code := h.StatusCode()
	s.inf.ResponseHeaders = h
	if !h.Has(http.Date) { // an upstream's date is the origin's (RFC 9110, section 6.6.1)
		h.AddConst(http.Date, s.h.l.date.text(w.Wall()))
	}
	if cfg.ServerHeader == Overwrite || cfg.ServerHeader == AppendIfAbsent && !h.Has(http.Server) {
		h.SetConst(http.Server, cfg.ServerName)
	}
	upgraded := s.upgrade && isUpgrade(h)
	if upgraded {
		if code >= 200 && !h.Has(http.TransferEncoding) && !h.Has(http.ContentLength) {
			h.AddConst(http.ContentLength, "0")
		}
		h.RemoveSet(&respHopUpgrade)
	} else {
		h.RemoveSet(&respHop)
	}
	if cfg.RequestIDInResponse || s.req.Has(http.EnvoyForceTrace) {
		if id := s.req.Find(http.XRequestID); id != nil {
			h.SetConst(http.XRequestID, id.Value)
		}
	}
	if cfg.Via != "" {
		appendList(h, http.Via, ", ", cfg.Via)
	}
	if cfg.Tracing != nil {
		s.traceResponse(h)
	}
	if cfg.ProxyStatus != nil {
		cfg.ProxyStatus.apply(s, h)
		code = h.StatusCode()
	}
	if s.h.mayDrain() {
		w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamCxDrainClose))
		s.h.startDrain()
	}
	if !s.requestDone {
		w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqResponseBeforeRqComplete))
	}
	if !s.h.isH2 {
		s.connection(h, upgraded || s.connect && code == 200)
	}
	s.count(code)
	s.sentHeaders = true
	s.inf.ResponseFirstTx = w.Now()
	if cfg.LogTunnel && s.upgraded && (code == 101 || code == 200) {
		cfg.Logs.Log(w, &s.inf, accesslog.DownstreamTunnelSuccessfullyEstablished)
	}
	if !end && s.route != nil && s.fm.Alone() {
		s.route = s.route.Rest()
	}
	s.enc.EncodeHeaders(h, end)
	if end {
		s.flushing()
	}
}

// flushing bounds how long a client may leave the end of a response waiting for its windows (stream_flush_timeout, and flush_timeout
// of routes).
func (s *Stream) flushing() {
	if s.responseDone || s.dead {
		return
	}
	s.lingers = true
	s.idleTimeout = int64(s.h.cfg.StreamFlushTimeout)
	if e := s.route; e != nil && e.HasFlushTimeout {
		s.idleTimeout = int64(e.FlushTimeout)
	}
	if s.idleTimeout == 0 {
		s.h.w.Disarm(&s.idle)
	}
	s.touch()
}

// mayDrain tells whether the connection should begin to end, because its listener does.
func (h *Conn) mayDrain() bool {
	return !h.draining && !h.noticed && h.cfg.Draining != nil && h.cfg.Draining()
}

// persister is a codec's stream whose connection may go on although the response says "connection: close".
type persister interface{ Persist() }

// connection decides whether an HTTP/1 connection may carry another request, and tells the client. The answer to an upgrade says
// nothing of the kind.
func (s *Stream) connection(h *http.HeaderMap, tunnel bool) {
	c := s.h
	if s.inf.Protocol == http.HTTP10 {
		if !h.Has(http.ContentLength) {
			// There are no chunks in HTTP/1.0: the body ends with the connection.
			s.closeAfter, s.untilClose = true, true
		}
		if !s.closeAfter {
			h.SetConst(http.Connection, "keep-alive")
		}
	}
	s.closeAfter = s.closeAfter || c.soft
	if s.closeAfter || !s.requestDone {
		c.draining = true // the rest of a request's body would be taken for the next request
	}
	if tunnel || !c.draining && !c.noticed {
		return
	}
	h.SetConst(http.Connection, "close")
	if !c.draining {
		// The drain has only begun: requests that are on their way are still served.
		if p, ok := s.enc.(persister); ok {
			p.Persist()
		}
	}
}

// SendData sends body bytes.
func (s *Stream) SendData(data *buffer.Buffer, end bool) {
	s.touch()
	s.inf.BytesSent += uint64(data.Len())
	s.enc.EncodeData(data, end)
	if end {
		s.flushing()
	}
}

// SendTrailers ends the response.
func (s *Stream) SendTrailers(t *http.HeaderMap) {
	s.touch()
	s.inf.ResponseTrailers = t
	s.enc.EncodeTrailers(t)
	s.flushing()
}

// dateCache keeps the date header's text for a second.
type dateCache struct {
	second int64
	str    string
}

func (d *dateCache) text(wall int64) string {
	if sec := wall / int64(time.Second); sec != d.second || d.str == "" {
		d.second = sec
		d.str = time.Unix(sec, 0).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	}
	return d.str
}
