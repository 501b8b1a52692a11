// Package xdstest is a control plane for tests: it hands each stream to the test, request by request, and sends what the test says. It
// knows nothing of resources and answers nothing by itself.
//
// A Server runs on goroutines of net/http; its methods may be called from any goroutine. It never sleeps.
package xdstest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// Server is a control plane on a port of the loopback, with HTTP/2 without TLS.
type Server struct {
	// Addr is its address.
	Addr    string
	http    *http.Server
	served  chan struct{}
	streams chan *Stream
	done    chan struct{}
	once    sync.Once
}

// Stream is one stream that a client has opened.
type Stream struct {
	// Path is its method, Header what the client said beside.
	Path   string
	Header http.Header
	// requests are the messages of the client; closed when it ends.
	requests chan []byte
	out      chan []byte
	end      chan status
	gone     chan struct{}
}

type status struct {
	code    int
	message string
}

// Start starts a Server on a free port. It ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartAt(t, "127.0.0.1:0")
}

// StartAt is Start for an address, so that a control plane can come back.
func StartAt(t testing.TB, addr string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String(), served: make(chan struct{}), streams: make(chan *Stream, 64), done: make(chan struct{})}
	p := &http.Protocols{}
	p.SetUnencryptedHTTP2(true)
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), Protocols: p, ReadHeaderTimeout: patience}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l)
	}()
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and all its connections.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.done)
		_ = s.http.Close()
		<-s.served
	})
}

// Streams is where streams come from as clients open them.
func (s *Server) Streams() <-chan *Stream { return s.streams }

// Next waits for the next stream.
func (s *Server) Next(t testing.TB) *Stream {
	t.Helper()
	select {
	case x := <-s.streams:
		return x
	case <-time.After(patience):
		t.Fatal("no stream was opened")
		return nil
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	x := &Stream{Path: r.URL.Path, Header: r.Header, requests: make(chan []byte, 4096), out: make(chan []byte, 64), end: make(chan status, 1), gone: make(chan struct{})}
	defer close(x.gone)
	w.Header().Set("Content-Type", "application/grpc")
	select {
	case s.streams <- x:
	case <-s.done:
		return
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	defer r.Body.Close()
	reading.Go(func() {
		defer close(x.requests)
		for {
			b, err := readMessage(r.Body)
			if err != nil {
				return
			}
			x.requests <- b
		}
	})
	flush := http.NewResponseController(w).Flush
	for {
		select {
		case b := <-x.out:
			_, _ = w.Write(b)
			_ = flush()
		case e := <-x.end:
			w.Header().Set(http.TrailerPrefix+textproto.CanonicalMIMEHeaderKey("grpc-status"), strconv.Itoa(e.code))
			w.Header().Set(http.TrailerPrefix+textproto.CanonicalMIMEHeaderKey("grpc-message"), e.message)
			return
		case <-r.Context().Done(): // of Close too, which breaks the connections
			return
		}
	}
}

func readMessage(r io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	if head[0] != 0 {
		return nil, errors.New("a compressed message")
	}
	b := make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

// Frame is a message as it stands on the wire.
func Frame(message []byte) []byte {
	b := make([]byte, 5, 5+len(message))
	binary.BigEndian.PutUint32(b[1:], uint32(len(message)))
	return append(b, message...)
}

// SendRaw sends bytes as they are.
func (x *Stream) SendRaw(b []byte) {
	select {
	case x.out <- b:
	case <-x.gone:
	}
}

// Send sends a response in state of the world.
func (x *Stream) Send(r *xdstype.Response) { x.SendRaw(Frame(r.Append(nil))) }

// SendDelta sends a delta response.
func (x *Stream) SendDelta(r *xdstype.DeltaResponse) { x.SendRaw(Frame(r.Append(nil))) }

// End ends the stream with a status of gRPC.
func (x *Stream) End(code int, message string) {
	x.end <- status{code, message}
	<-x.gone
}

// Requests are the serialized requests of the client as they come. It is closed when the client ends the stream.
func (x *Stream) Requests() <-chan []byte { return x.requests }

// Recv waits for the next request in state of the world.
func (x *Stream) Recv(t testing.TB) *xdstype.Request {
	t.Helper()
	r, err := xdstype.ParseRequest(x.recv(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// RecvDelta waits for the next delta request.
func (x *Stream) RecvDelta(t testing.TB) *xdstype.DeltaRequest {
	t.Helper()
	r, err := xdstype.ParseDeltaRequest(x.recv(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (x *Stream) recv(t testing.TB) []byte {
	t.Helper()
	select {
	case b, ok := <-x.requests:
		if !ok {
			t.Fatal("the client has ended the stream")
		}
		return b
	case <-time.After(patience):
		t.Fatal("no request came")
	}
	return nil
}
