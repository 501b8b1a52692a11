package hcm

import (
	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
)

// Recreate lets the request start anew in the next pass (internal redirects): with its headers as they are then, through new filters,
// to the route that fits them. The round that ends is counted and logged as a request of its own, as Envoy does, with head as its
// answer if there is one.
func (s *Stream) Recreate(body *buffer.Buffer, head *http.HeaderMap) bool {
	if s.dead || s.again || !s.requestDone || s.sentHeaders || s.upgrade || s.connect {
		return false
	}
	s.again = true
	s.inf.Details = "internal_redirect"
	if head != nil {
		h := s.replyHead()
		h.CopyFrom(head)
		s.inf.ResponseHeaders = h
		s.inf.Code = head.StatusCode() // it is not counted: the client does not see it
	}
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
	if s.reply != nil {
		s.reply.Init(&s.arena)
	}
	s.localReply = false
	was := s.inf
	s.beginInfo()
	s.inf.Start, s.inf.StartWall = was.Start, was.StartWall
	s.inf.BytesReceived, s.inf.Redirects = was.BytesReceived, was.Redirects
	if body != nil {
		s.inf.BytesReceived += uint64(body.Len()) // as Envoy counts: it is received once more
	}
	s.countBegin()
	s.inf.RequestDone, s.inf.RequestHeaders = h.w.Now(), &s.req
	if cfg.MaxStreamDuration > 0 {
		s.arm(&s.maxDuration, (*Stream).onMaxDuration, cfg.MaxStreamDuration)
	}
	s.touch()
	s.table = cfg.table(&s.req)
	s.filters = false
	if !s.checkPath(&s.req, s.req.Get(http.Method)) {
		if body != nil {
			body.Reset()
		}
		s.maybeFinish()
		return
	}
	s.lookup()
	s.filters = true
	s.fm.Init(s, cfg.Chain, s.bufferLimit())
	if cfg.LogStart {
		cfg.Logs.Log(h.w, &s.inf, accesslog.DownstreamStart)
	}
	s.fm.DecodeHeaders(&s.req, body == nil)
	s.keepRoute()
	if body != nil {
		if !s.dead {
			s.fm.DecodeData(body, true)
		}
		body.Reset()
	}
	s.maybeFinish()
}
