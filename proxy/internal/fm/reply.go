package fm

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/freelist"
)

// The replies to a body that is more than a filter may buffer.
var (
	requestTooLarge  = &filter.LocalReply{Code: 413, Body: "Payload Too Large", Details: "request_payload_too_large", GRPCStatus: -1}
	responseTooLarge = &filter.LocalReply{Code: 500, Body: "Internal Server Error", Details: "response_payload_too_large", GRPCStatus: -1}
)

// LocalReply answers the request from inside. A reply that is asked for in a filter's callback is made when the callback has
// returned, so that no filter is called back, or destroyed, in the middle of what it does. The first reply wins.
func (s *Stream) LocalReply(r *filter.LocalReply) {
	if s.closing || s.destroyed || s.replying || s.pending != nil || s.enc.stopped {
		return
	}
	s.pending = r
	s.dec.stopped = true
	if s.enc.headers != nil {
		s.enc.stopped = true
	}
	s.settle()
}

// settle makes a reply that waits, unless a callback is on the stack.
func (s *Stream) settle() {
	if r := s.pending; r != nil && s.depth == 0 {
		s.pending = nil
		s.reply(r)
	}
}

// reply makes a local reply: through the encoding filters if they have seen no response yet; past them if they have, but the client
// has not; by a reset if it is too late for a reply. That is what Envoy does.
func (s *Stream) reply(r *filter.LocalReply) {
	gen := s.gen
	if p, ok := s.owner.(Replier); ok {
		s.enc.stopped = true
		s.dropHeld(&s.dec)
		if s.gen == gen {
			p.LocalReply(r)
		}
		return
	}
	s.owner.Info().Details = r.Details
	if !s.tell(r) {
		return
	}
	s.dropHeld(&s.dec)
	if s.gen != gen {
		return
	}
	if s.responseStarted {
		s.owner.Reset(http.ResetLocal)
		return
	}
	past := s.enc.stopped
	if past {
		s.dropHeld(&s.enc)
		if s.gen != gen {
			return
		}
	}
	h, body := s.owner.PrepareLocalReply(r)
	s.enc.headers = h
	s.enc.received = true
	if past {
		s.headersOut(&s.enc, h, body == "")
	} else {
		s.headers(&s.enc, 0, body == "")
	}
	if s.gen != gen || body == "" || s.enc.stopped != past {
		return
	}
	w := s.owner.Worker()
	free := replies.Get(w)
	b := freelist.Take(free, nil)
	b.Init(&w.Bufs)
	b.AppendString(body)
	if past {
		s.dataOut(&s.enc, b, true)
	} else {
		s.data(&s.enc, 0, b, true)
	}
	b.Reset()
	if len(*free) < maxReplies {
		*free = append(*free, b)
	}
}

// replies are the buffers of local replies that a worker keeps.
var replies = event.NewLocal(func(*event.Worker) *[]*buffer.Buffer { return new([]*buffer.Buffer) })

// maxReplies bounds them. More are in use at a time only when making one reply makes others.
const maxReplies = 64

// tell lets the filters know of a reply. false: the stream is over.
func (s *Stream) tell(r *filter.LocalReply) bool {
	gen := s.gen
	reset := false
	s.replying = true
	for i := range s.acts {
		s.depth++
		st := s.acts[i].f.OnLocalReply(r)
		s.depth--
		if s.gen != gen {
			return false
		}
		reset = reset || st == filter.LocalReplyContinueAndReset
	}
	s.replying = false
	if reset {
		s.owner.Reset(http.ResetLocal)
	}
	return !reset
}
