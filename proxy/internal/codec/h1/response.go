package h1

import (
	"bytes"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

var responseRules = fieldRules{merge: &http.ResponseInline, tooMany: ErrTooManyHeaders}

// statusLine is a status line in parts.
type statusLine struct {
	code    int
	text    string // the three digits
	reason  []byte
	version http.Proto
}

// parseStatusLine takes a status line apart (RFC 9112, section 4).
func parseStatusLine(b []byte) (s statusLine, err *codec.Err) {
	if len(b) >= 12 && b[8] == ' ' && b[9] != ' ' {
		if len(b) > 12 && (b[12] != ' ' || len(b) > 13 && b[13] <= ' ') {
			return slowStatusLine(b)
		}
		if s.version, _ = version(b[:8]); s.version == http.ProtoNone {
			return s, ErrVersion
		}
		if len(b) > 13 {
			s.reason = b[13:]
		}
		return s, s.setCode(b[9:12])
	}
	return slowStatusLine(b)
}

// slowStatusLine takes any run of blanks between the parts.
func slowStatusLine(b []byte) (s statusLine, err *codec.Err) {
	v, rest := word(b)
	if len(v) == 0 {
		return s, ErrVersion
	}
	if s.version, _ = version(v); s.version == http.ProtoNone {
		return s, ErrVersion
	}
	code, reason := word(rest)
	// As Envoy, that of a code all up to the reason is a part but for white space: what is wrong there counts before the rest of the head.
	if blank := rest[len(code) : len(rest)-len(reason)]; bytes.ContainsFunc(blank, func(r rune) bool { return r < '\t' || r > '\r' && r < ' ' }) {
		return s, ErrStatusLine
	}
	s.reason = trimControls(reason)
	return s, s.setCode(code)
}

func (s *statusLine) setCode(b []byte) *codec.Err {
	if !s.digits(b) {
		return ErrStatusLine
	}
	return nil
}

func (s *statusLine) digits(b []byte) bool {
	if len(b) != 3 || b[0] < '1' || b[0] > '9' || b[1]-'0' > 9 || b[2]-'0' > 9 {
		return false
	}
	s.code = int(b[0]-'0')*100 + int(b[1]-'0')*10 + int(b[2]-'0')
	s.text = statusLines[s.code][9:12]
	return true
}

// fastResponse is parseResponse for heads that are complete in b and have nothing unusual. It returns the bytes of the head, 0
// if parseResponse must do it. 1xx responses are not for it.
func (o *Options) fastResponse(x *exchange, b []byte, max int) (n, code int, err *codec.Err) {
	h := x.message.h
	var f fastHead
	f.begin(h, b, max)
	first, ok := f.statusLine()
	if ok = ok && first.code >= 200; ok {
		h.AddConst(http.Status, first.text)
		ok = f.fields(h, &responseRules, o.maxHeaders())
	}
	f.keep(h, ok)
	if !ok {
		h.Init(h.Arena())
		return 0, 0, nil
	}
	x.version = first.version
	return f.pos, first.code, o.frameResponse(x, h, first.code)
}

// parseResponse fills h from a complete head and decides about the body.
func (o *Options) parseResponse(x *exchange, h *http.HeaderMap, raw []byte, lines []line) (code int, err *codec.Err) {
	buf := h.Arena().Bytes(len(raw))
	copy(buf, raw)
	first, err := parseStatusLine(buf[lines[0].start:lines[0].end])
	if controls(buf) {
		return 0, ErrFieldValue
	}
	if err != nil {
		return 0, err
	}
	x.version = first.version
	if o.NewFormatter != nil {
		f := o.NewFormatter(h.Arena())
		h.SetFormatter(f)
		if v, st := value(first.reason); len(v) > 0 && st == valueClean {
			f.SetReason(http.View(v))
		}
	}
	h.AddConst(http.Status, first.text)
	rules := responseRules
	rules.max = o.maxHeaders()
	err = o.fields(h, buf, lines[1:], &rules)
	if x.lastChunked = rules.lastChunked; err != nil {
		return 0, err
	}
	if rules.late != nil {
		return 0, rules.late
	}
	return first.code, o.frameResponse(x, h, first.code)
}

// frameResponse decides where the response's body ends (RFC 9112, section 6.3) and whether the connection stays.
func (o *Options) frameResponse(x *exchange, h *http.HeaderMap, code int) *codec.Err {
	var length uint64
	var chunked bool
	x.phase = phaseUntilEOF
	tunnel := x.connect && code >= 200 && code < 300
	if h.HasAny(&framing) {
		if x.upgrade && upgrades(h) {
			if equalFold(h.Get(http.Upgrade), "h2c") {
				ignoreUpgrade(h)
			} else {
				tunnel = true
			}
		}
		var err *codec.Err
		if length, chunked, err = o.bodyLength(h, false, x.lastChunked); err != nil {
			return err
		}
		if code < 200 || code == 204 {
			if h.Has(http.TransferEncoding) {
				return ErrTENot
			}
			if h.Has(http.ContentLength) {
				if h.Get(http.ContentLength) != "0" {
					return ErrLengthNot
				}
				h.Remove(http.ContentLength)
			}
		}
		switch {
		case chunked:
			x.phase = phaseChunked
		case h.Has(http.ContentLength):
			if x.phase = phaseLength; length == 0 {
				x.phase = phaseDone
			}
			x.left = length
		}
	}
	if code >= 200 || code == 101 {
		x.notify = closes(h, x.version)
	}
	switch {
	case tunnel:
		x.phase = phaseTunnel
	case code < 200 || code == 204 || code == 304 || x.isHead:
		x.phase = phaseDone
	}
	return nil
}
