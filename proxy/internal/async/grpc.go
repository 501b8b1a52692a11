package async

import (
	"encoding/binary"
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// The codes of gRPC that a client makes itself.
const (
	GRPCOK                = 0
	GRPCUnknown           = 2
	GRPCPermissionDenied  = 7
	GRPCResourceExhausted = 8
	GRPCUnimplemented     = 12
	GRPCInternal          = 13
	GRPCUnavailable       = 14
	GRPCUnauthenticated   = 16
)

// DefaultGRPCMessageLimit bounds a message that is received, in bytes, if the options do not say.
const DefaultGRPCMessageLimit = 256 << 20

// firstGRPCRoom is how much room a message gets before its bytes have come: its length is only what the peer says.
const firstGRPCRoom = 64 << 10

// GRPCOptions say how to call a method.
type GRPCOptions struct {
	Cluster string
	// Path is "/package.Service/Method".
	Path string
	// Authority is the request's; "" means the name of the cluster.
	Authority string
	// Metadata are further headers. They live at least as long as the stream.
	Metadata []http.Header
	// LimitBytes bounds a message that is received; 0 means DefaultGRPCMessageLimit.
	LimitBytes int
}

// GRPCHandler gets what a stream brings, on its worker, never from within a call to it. After OnClose comes nothing.
type GRPCHandler interface {
	// OnMessage gets a whole message, which is the callee's from then on.
	OnMessage(message []byte)
	// OnClose is the end: a status of gRPC and what the peer, or the client itself, says of it.
	OnClose(status int, message string)
}

// GRPC is a stream of gRPC messages both ways. owner: its worker.
type GRPC struct {
	w     *event.Worker
	s     *Stream // nil: over
	hd    GRPCHandler
	limit int

	head    [5]byte // of the message under way
	headLen int
	left    int // bytes that its body still wants
	body    []byte

	reply  int // the status of a local reply whose body is awaited, -1: none
	text   []byte
	closed bool
}

// GRPC starts a stream. The only error is filter.ErrNoCluster. owner: w.
func (c *Client) GRPC(w *event.Worker, o *GRPCOptions, hd GRPCHandler) (*GRPC, error) {
	g := &GRPC{w: w, hd: hd, limit: o.LimitBytes, reply: -1}
	if g.limit <= 0 {
		g.limit = DefaultGRPCMessageLimit
	}
	s, err := c.Start(w, &Options{Cluster: o.Cluster, ForwardedFor: true}, (*grpcAnswer)(g))
	if err != nil {
		return nil, err
	}
	g.s = s
	authority := o.Authority
	if authority == "" {
		authority = o.Cluster
	}
	h := s.Headers()
	h.AddConst(http.Method, "POST")
	h.AddConst(http.Path, o.Path)
	h.AddConst(http.Authority, authority)
	h.AddConst(http.TE, "trailers")
	h.AddConst(http.ContentType, "application/grpc")
	for _, x := range o.Metadata {
		if x.ID != http.None {
			h.Add(x.ID, x.Value)
		} else {
			h.AddName(x.Name, x.Value)
		}
	}
	s.SendHeaders(false)
	return g, nil
}

// Send sends a message.
func (g *GRPC) Send(message []byte) {
	if g.s == nil {
		return
	}
	var prefix [5]byte
	binary.BigEndian.PutUint32(prefix[1:], uint32(len(message)))
	var b buffer.Buffer
	b.Init(&g.w.Bufs)
	b.Append(prefix[:])
	b.Append(message)
	g.s.SendData(&b, false)
}

// Hold stops the flow of messages, or lets it go on; calls nest. A message or two may still come.
func (g *GRPC) Hold(hold bool) {
	if g.s != nil {
		g.s.HoldAnswer(hold)
	}
}

// Close gives the stream up without a word. No event comes any more.
func (g *GRPC) Close() {
	g.closed = true
	if s := g.s; s != nil {
		g.s = nil
		s.Cancel()
	}
}

// end tells the handler of the end, once.
func (g *GRPC) end(status int, message string) {
	if g.closed {
		return
	}
	g.Close()
	g.hd.OnClose(status, message)
}

// grpcAnswer is a GRPC as its stream sees it.
type grpcAnswer GRPC

// OnHeaders looks whether the answer is gRPC's at all.
func (a *grpcAnswer) OnHeaders(h *http.HeaderMap, end bool) {
	g := (*GRPC)(a)
	if g.s == nil {
		return
	}
	if r := g.s.Reply(); r != nil {
		if g.reply = grpcOf(r.Code); end {
			g.end(g.reply, "")
		}
		return
	}
	code := h.StatusCode()
	switch {
	case end && h.Get(http.GRPCStatus) != "":
		g.trailers(h)
	case code != 200:
		g.end(grpcOf(code), "")
	case end:
		g.end(GRPCUnknown, "")
	}
}

// OnData takes messages out of the bytes.
func (a *grpcAnswer) OnData(data *buffer.Buffer, end bool) {
	g := (*GRPC)(a)
	if g.reply >= 0 {
		const most = 4 << 10
		if g.text = data.AppendTo(g.text); len(g.text) > most {
			g.text = g.text[:most]
		}
		if end {
			g.end(g.reply, string(g.text))
		}
		return
	}
	for data.Len() > 0 && !g.closed {
		if !g.take(data) {
			return
		}
	}
	if end {
		g.end(GRPCUnknown, "")
	}
}

// take reads as much of one message as there is, and tells whether the stream may go on.
func (g *GRPC) take(data *buffer.Buffer) bool {
	if g.left == 0 && g.headLen < len(g.head) {
		n := copy(g.head[g.headLen:], data.Front())
		data.Drain(n)
		if g.headLen += n; g.headLen < len(g.head) {
			return true
		}
		size := binary.BigEndian.Uint32(g.head[1:])
		switch {
		case g.head[0] != 0:
			g.end(GRPCInternal, "compressed gRPC messages are not supported")
			return false
		case uint64(size) > uint64(g.limit):
			g.end(GRPCResourceExhausted, "a gRPC message of "+strconv.FormatUint(uint64(size), 10)+" bytes is larger than "+strconv.Itoa(g.limit))
			return false
		}
		g.left = int(size)
		g.body = make([]byte, 0, min(g.left, firstGRPCRoom))
	}
	n := min(g.left, data.Len())
	for n > 0 {
		chunk := data.Front()
		chunk = chunk[:min(n, len(chunk))]
		g.body = append(g.body, chunk...) // it grows by doubling: a peer that only claims much costs little
		data.Drain(len(chunk))
		n -= len(chunk)
		g.left -= len(chunk)
	}
	if g.left == 0 {
		body := g.body
		g.body, g.headLen = nil, 0
		g.hd.OnMessage(body)
	}
	return true
}

// OnTrailers is gRPC's own end.
func (a *grpcAnswer) OnTrailers(h *http.HeaderMap) { (*GRPC)(a).trailers(h) }

func (g *GRPC) trailers(h *http.HeaderMap) {
	status, err := strconv.ParseUint(h.Get(http.GRPCStatus), 10, 31)
	if err != nil {
		g.end(GRPCUnknown, "")
		return
	}
	g.end(int(status), unescape(h.Get(http.GRPCMessage)))
}

// OnReset is the end of an answer that broke off.
func (a *grpcAnswer) OnReset(_ http.ResetReason, details string) {
	(*GRPC)(a).end(GRPCInternal, details)
}

// OnAboveHighWatermark does nothing: who sends is told by the answers.
func (a *grpcAnswer) OnAboveHighWatermark() {}

// OnBelowLowWatermark does nothing.
func (a *grpcAnswer) OnBelowLowWatermark() {}

// grpcOf is the status for an answer that is not gRPC's (grpc.github.io/grpc/core/md_doc_http-grpc-status-mapping.html).
func grpcOf(code int) int {
	switch code {
	case 400:
		return GRPCInternal
	case 401:
		return GRPCUnauthenticated
	case 403:
		return GRPCPermissionDenied
	case 404:
		return GRPCUnimplemented
	case 429, 502, 503, 504:
		return GRPCUnavailable
	}
	return GRPCUnknown
}

// unescape undoes the percent encoding of grpc-message.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b = append(b, byte(v))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}
