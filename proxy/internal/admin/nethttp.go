package admin

import (
	"io"
	"net/http"
)

// Handler returns the interface as a net/http handler. post runs a function on the main loop.
func (a *Admin) Handler(post func(f func())) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
		if err != nil {
			http.Error(w, "Payload Too Large", http.StatusRequestEntityTooLarge)
			return
		}
		r := Parse(req.Method, req.URL.RequestURI(), req.Header.Get("Content-Type"), body)
		got := make(chan *Response, 1)
		post(func() { a.Serve(r, func(x *Response) { got <- x }) })
		var x *Response
		select {
		case x = <-got:
		case <-req.Context().Done():
			return // the answer, if it still comes, is dropped with the channel
		}
		w.Header().Set("Content-Type", x.ContentType)
		w.Header().Set("Cache-Control", "no-cache, max-age=0")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		for _, h := range x.Header {
			w.Header().Set(h[0], h[1])
		}
		w.WriteHeader(x.Code)
		if x.Body != nil {
			defer post(func() { Drop(x.Body) })
		}
		for x.Body != nil {
			type part struct {
				b    []byte
				more bool
			}
			next := make(chan part, 1)
			post(func() {
				b, more := x.Body.Next(nil, piece)
				next <- part{b, more}
			})
			select {
			case p := <-next:
				if _, err := w.Write(p.b); err != nil || !p.more {
					return
				}
			case <-req.Context().Done():
				return
			}
		}
	})
}
