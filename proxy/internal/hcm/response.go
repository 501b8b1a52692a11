package hcm

import (
	"time"

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
	h := &s.reply
	h.Init(&s.arena)
	h.AddConst(http.Status, "100")
	s.enc.Encode1xx(h)
	h.Init(&s.arena)
}

// Send1xx sends an informational head: a 100, if the upstream's is wanted.
func (s *Stream) Send1xx(h *http.HeaderMap) {
	if h.StatusCode() != 100 || !s.h.cfg.Proxy100Continue {
		return // Envoy's codecs pass no other ones on
	}
	h.RemoveSet(&respHop)
	s.enc.Encode1xx(h)
}

// SendHeaders sends the response's head: the last rules, then the codec.
func (s *Stream) SendHeaders(h *http.HeaderMap, end bool) {
	cfg := s.h.cfg
	w := s.h.w
	s.touch()
	code := h.StatusCode()
	s.inf.Code = code
	s.inf.ResponseHeaders = h
	upgraded := s.upgrade && (code == 101 || code == 200 && (s.h.isH2 || s.connect))
	if upgraded {
		h.RemoveSet(&respHopUpgrade)
	} else {
		h.RemoveSet(&respHop)
	}
	h.SetConst(http.Date, s.h.l.date.text(w.Wall()))
	switch cfg.ServerHeader {
	case Overwrite:
		h.SetConst(http.Server, cfg.ServerName)
	case AppendIfAbsent:
		if !h.Has(http.Server) {
			h.AddConst(http.Server, cfg.ServerName)
		}
	}
	if cfg.RequestIDInResponse {
		if id := s.req.Get(http.XRequestID); id != "" {
			h.SetConst(http.XRequestID, id)
		}
	}
	if cfg.Via != "" {
		appendList(h, http.Via, ", ", cfg.Via)
	}
	if !s.h.draining && cfg.Draining != nil && cfg.Draining() {
		w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamCxDrainClose))
		s.h.startDrain()
	}
	if !s.h.isH2 && !upgraded {
		if s.h.draining || s.h.noticed || s.enc.CloseAfter() {
			s.closeAfter = true
		}
		if !s.requestDone {
			s.closeAfter = true // the rest of the body would be taken for the next request
		}
		if s.closeAfter {
			h.SetConst(http.Connection, "close")
			s.h.draining = true
		} else if s.inf.Protocol == http.HTTP10 {
			h.SetConst(http.Connection, "keep-alive")
		}
	}
	s.sentHeaders = true
	s.inf.ResponseFirstTx = w.Now()
	s.enc.EncodeHeaders(h, end)
	if end {
		s.inf.ResponseDone = w.Now()
	}
}

// SendData sends body bytes.
func (s *Stream) SendData(data *buffer.Buffer, end bool) {
	s.touch()
	s.inf.BytesSent += uint64(data.Len())
	if end {
		s.inf.ResponseDone = s.h.w.Now()
	}
	s.enc.EncodeData(data, end)
}

// SendTrailers ends the response.
func (s *Stream) SendTrailers(t *http.HeaderMap) {
	s.touch()
	s.inf.ResponseTrailers = t
	s.inf.ResponseDone = s.h.w.Now()
	s.enc.EncodeTrailers(t)
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
