package hcm

import (
	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
)

// Recreate lets the request start anew in the next pass (internal redirects): with its headers as they are then, through new filters,
// to the route that fits them. The round that ends is counted and logged as a request of its own, as Envoy does.
func (s *Stream) Recreate(body *buffer.Buffer) bool {
	if s.dead || s.again || !s.requestDone || s.sentHeaders || s.upgrade || s.connect {
		return false
	}
	s.again = true
	if body != nil && body.Len() > 0 {
		s.kept = &buffer.Buffer{}
		s.kept.Init(&s.h.w.Bufs)
		s.kept.Move(body)
	}
	s.h.w.Post(s.restart)
	return true
}

// restart begins the new round.
func (s *Stream) restart() {
	if s.dead || !s.again {
		return // the client has left meanwhile
	}
	s.again = false
	s.account()
	h, cfg, body := s.h, s.h.cfg, s.kept
	s.kept = nil
	s.reply.Init(&s.arena)
	s.localReply = false
	s.beginInfo()
	s.countBegin()
	s.inf.RequestDone, s.inf.RequestHeaders = h.w.Now(), &s.req
	if cfg.MaxStreamDuration > 0 {
		h.w.Arm(&s.maxDuration, cfg.MaxStreamDuration)
	}
	s.touch()
	s.table = cfg.Routes.Load()
	s.lookup()
	s.fm.Init(s, cfg.Chain, s.bufferLimit())
	if cfg.LogStart {
		cfg.Logs.Log(h.w, &s.inf, accesslog.DownstreamStart)
	}
	s.fm.DecodeHeaders(&s.req, body == nil)
	if body != nil {
		if !s.dead {
			s.fm.DecodeData(body, true)
		}
		body.Reset()
	}
	s.maybeFinish()
}
