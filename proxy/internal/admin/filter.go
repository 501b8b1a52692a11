package admin

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
)

// piece is how many bytes of a page are written in one pass of the main loop.
const piece = 64 << 10

// maxBody bounds request bodies.
const maxBody = 1 << 20

// Factory makes the terminal filter of the admin listener, which lives on the main loop.
type Factory struct{ Admin *Admin }

// Sides says that the filter sees requests.
func (f *Factory) Sides() filter.Sides { return filter.Decoder }

// New returns the filter of one request.
func (f *Factory) New(network.Dispatcher) filter.Filter { return &adminFilter{a: f.Admin} }

type adminFilter struct {
	filter.PassThrough
	a     *Admin
	cb    fm.Terminal
	head  *http.HeaderMap
	body  []byte
	page  Body
	resp  http.HeaderMap
	gone  bool
	above bool
	// queued: more will run in a later pass. tooLarge: the request's body is longer than maxBody.
	queued, tooLarge bool
}

func (f *adminFilter) DecodeHeaders(h *http.HeaderMap, end bool) filter.HeadersStatus {
	f.cb = f.CB.(fm.Terminal)
	f.head = h
	if end {
		f.serve()
	}
	return filter.HeadersStopIteration
}

func (f *adminFilter) DecodeData(data *buffer.Buffer, end bool) filter.DataStatus {
	if len(f.body)+data.Len() <= maxBody {
		f.body = data.AppendTo(f.body)
	} else {
		f.tooLarge = true
	}
	data.Reset()
	if end {
		f.serve()
	}
	return filter.DataStopIterationNoBuffer
}

func (f *adminFilter) DecodeTrailers(*http.HeaderMap) filter.TrailersStatus {
	f.serve()
	return filter.TrailersStopIteration
}

func (f *adminFilter) serve() {
	f.cb.SubscribeWatermarks(func(above bool) {
		f.above = above
		if !above && f.page != nil {
			f.later()
		}
	})
	if f.tooLarge {
		f.answer(Fail(413, "Payload Too Large"))
		return
	}
	f.a.Serve(Parse(f.head.Get(http.Method), f.head.Get(http.Path), f.head.Get(http.ContentType), f.body), f.answer)
}

func (f *adminFilter) answer(r *Response) {
	if f.gone {
		Drop(r.Body)
		return
	}
	f.cb.Info().Details = "admin_filter_response"
	h := &f.resp
	h.Init(f.cb.Arena())
	h.Add(http.Status, statusOf(r.Code))
	h.Add(http.ContentType, r.ContentType)
	h.AddConst(http.CacheControl, "no-cache, max-age=0")
	h.AddName("x-content-type-options", "nosniff")
	for _, x := range r.Header {
		h.AddName(x[0], x[1])
	}
	f.page = r.Body
	if f.page == nil {
		f.cb.EncodeHeaders(h, true)
		return
	}
	f.cb.EncodeHeaders(h, false)
	if !f.gone {
		f.more()
	}
}

// more writes the next piece, and asks for another pass if there is more.
func (f *adminFilter) more() {
	f.queued = false
	if f.gone || f.page == nil || f.above {
		return
	}
	out, more := f.page.Next(nil, piece)
	if !more {
		f.page = nil
	}
	if more && len(out) == 0 {
		f.later()
		return
	}
	var b buffer.Buffer
	b.Init(&f.cb.Worker().Bufs)
	b.Append(out)
	f.cb.EncodeData(&b, !more)
	b.Reset()
	if more && !f.gone {
		f.later()
	}
}

func (f *adminFilter) later() {
	if !f.queued {
		f.queued = true
		f.cb.Worker().Post(f.more)
	}
}

// OnDestroy ends the page.
func (f *adminFilter) OnDestroy() {
	f.gone = true
	if f.page != nil {
		Drop(f.page)
		f.page = nil
	}
}

func statusOf(code int) string {
	return string([]byte{byte('0' + code/100), byte('0' + code/10%10), byte('0' + code%10)})
}
