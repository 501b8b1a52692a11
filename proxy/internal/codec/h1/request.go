package h1

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// noHost stands in :authority until a host header is seen. No received value can be equal to it.
const noHost = "\x00"

// framing are the fields that decide about a message's body and connection.
var framing = http.MakeSet(http.Connection, http.ProxyConnection, http.ContentLength, http.TransferEncoding, http.Upgrade)

var requestRules = fieldRules{merge: &http.RequestInline, tooMany: ErrTooManyHeaders, host: true}

// fastRequest is parseRequest for heads that are complete in b and have nothing unusual. It returns the bytes of the head, 0 if
// parseRequest must do it.
func (o *Options) fastRequest(r *request, b []byte, max int) (n int, err *codec.Err) {
	h := r.h
	var f fastHead
	f.begin(h, b, max)
	first, ok := f.requestLine()
	if ok {
		h.AddConst(http.Method, first.method)
		h.AddConst(http.Path, http.View(first.target))
		h.AddConst(http.Authority, noHost)
		ok = f.fields(h, &requestRules, o.maxHeaders()-1)
	}
	f.keep(h, ok)
	if !ok {
		h.Init(h.Arena())
		return 0, nil
	}
	return f.pos, o.finishRequest(r, h, first)
}

// parseRequest fills r.h from a complete head and decides about the body.
func (o *Options) parseRequest(r *request, raw []byte, lines []line) *codec.Err {
	h := r.h
	buf := h.Arena().Bytes(len(raw))
	copy(buf, raw)
	first, err := o.parseRequestLine(buf[lines[0].start:lines[0].end])
	if !first.simple && controls(buf) {
		return ErrFieldValue // whatever else is wrong
	}
	if err != nil {
		return err
	}
	if o.NewFormatter != nil {
		h.SetFormatter(o.NewFormatter(h.Arena()))
	}
	h.AddConst(http.Method, first.method)
	h.AddConst(http.Path, http.View(first.target))
	h.AddConst(http.Authority, noHost)
	if !first.simple {
		rules := requestRules
		rules.max, rules.action = o.maxHeaders(), o.Underscores
		err := o.fields(h, buf, lines[1:], &rules)
		r.lastChunked = rules.lastChunked
		if r.dropped = rules.dropped; err != nil {
			return err
		}
		if rules.late != nil {
			if r.badLength(h) {
				return ErrContentLength
			}
			return rules.late
		}
	}
	if h.Get(http.Authority) == noHost {
		h.Remove(http.Authority)
	}
	return o.finishRequest(r, h, first)
}

// finishRequest draws the conclusions from a request line and fields.
func (o *Options) finishRequest(r *request, h *http.HeaderMap, first startLine) *codec.Err {
	r.version = first.version
	r.closes = first.version == http.HTTP10
	if h.HasAny(&framing) || first.method == "CONNECT" || r.closes {
		if err := o.frameRequest(r, h, first.method); err != nil {
			if err == ErrContentLength {
				r.version = http.HTTP11 // it is found before the version is
			}
			return err
		}
	}
	if first.method == "HEAD" {
		r.isHead = true
	}
	if c := first.target[0]; c != '/' || first.method == "CONNECT" {
		if err := o.requestTarget(h, first); err != nil {
			return err
		}
		if o.ValidateScheme && !r.s.secure && h.Get(http.Scheme) == "https" {
			return ErrHTTPSWithoutTLS
		}
	}
	if r.version == http.HTTP10 && !o.AcceptHTTP10 {
		return nil // to be refused for its age
	}
	if a := h.Get(http.Authority); !allOf(a, ctAuth) {
		return ErrAuthority
	}
	return nil
}

// requestTarget puts a target that is not in origin form into the pseudo headers.
func (o *Options) requestTarget(h *http.HeaderMap, first startLine) *codec.Err {
	connect := first.method == "CONNECT"
	if !connect && (first.target[0] == '*' && first.method == "OPTIONS" || !o.AllowAbsoluteURL) {
		return nil
	}
	scheme, authority, path, err := splitTarget(first.target, connect)
	if err != nil {
		return err
	}
	if connect {
		h.Remove(http.Path)
	} else {
		h.SetConst(http.Path, path)
	}
	if h.Has(http.Authority) {
		h.SetConst(http.Authority, authority)
	} else {
		h.InsertView(pseudoLen(h), http.Authority, authority)
	}
	if !connect {
		h.InsertView(pseudoLen(h), http.Scheme, scheme)
	}
	return nil
}

func pseudoLen(h *http.HeaderMap) int {
	n := 0
	for _, f := range h.All() {
		if f.ID < http.Method || f.ID > http.Protocol {
			break
		}
		n++
	}
	return n
}

// frameRequest decides where the request's body ends (RFC 9112, section 6.3) and whether the connection stays.
func (o *Options) frameRequest(r *request, h *http.HeaderMap, method string) *codec.Err {
	tunnel := false
	if upgrades(h) {
		if equalFold(h.Get(http.Upgrade), "h2c") || o.IgnoreUpgrade != nil && !o.keepUpgrade(h) {
			ignoreUpgrade(h)
		} else {
			tunnel, r.upgrade = true, true
		}
	}
	length, chunked, err := o.bodyLength(h, method == "CONNECT", r.lastChunked)
	if err != nil {
		return err
	}
	if method == "CONNECT" {
		tunnel, r.connect = true, true
	}
	r.closes = closes(h, r.version)
	if !tunnel && h.Has(http.Connection) {
		if err := nominated(h); err != nil {
			return err
		}
	}
	switch {
	case tunnel:
		r.phase = phaseTunnel
	case chunked:
		r.phase = phaseChunked
	case length > 0:
		r.phase, r.left = phaseLength, length
	}
	return nil
}

// badLength tells whether there is a content-length that counts and is none.
func (m *message) badLength(h *http.HeaderMap) bool {
	cl := h.Find(http.ContentLength)
	if cl == nil || m.lastChunked || equalFold(h.Get(http.TransferEncoding), "chunked") {
		return false
	}
	_, ok := decimal(cl.Value)
	return !ok
}

// bodyLength reads content-length and transfer-encoding and refuses what could be read in two ways. lastChunked: the last of several lines of
// transfer-encoding was chunked, so that a content-length is not looked at; what is refused is the same, for another reason.
func (o *Options) bodyLength(h *http.HeaderMap, connect, lastChunked bool) (length uint64, chunked bool, err *codec.Err) {
	cl := h.Find(http.ContentLength)
	te := h.Find(http.TransferEncoding)
	if te != nil {
		chunked = equalFold(te.Value, "chunked")
	}
	if cl != nil && !chunked && !lastChunked {
		var ok bool
		if length, ok = decimal(cl.Value); !ok {
			return 0, false, ErrContentLength
		}
	}
	if connect && cl != nil {
		if cl.Value != "0" {
			return 0, false, ErrConnBody
		}
		h.Remove(http.ContentLength)
		cl, te = nil, h.Find(http.TransferEncoding)
	}
	if te != nil {
		if cl != nil {
			if !chunked && !lastChunked || !o.AllowChunkedLength {
				return 0, false, ErrLengthAndTE
			}
			h.Remove(http.ContentLength)
		}
		if !chunked || connect {
			return 0, false, ErrTransferEncoding
		}
	}
	return length, chunked, nil
}
