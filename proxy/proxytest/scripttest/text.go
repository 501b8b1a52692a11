package scripttest

import (
	"net/http"
	"strconv"
	"strings"
)

// decoder takes HTTP/1 text apart, leniently: it is for tests that say what they mean.
type decoder struct {
	response bool
	// head is called with the start line and the fields of each head; end tells that nothing follows it. data is called with what there
	// is of a body, without its coding, and end at its end. An interim response is a head alone.
	head func(start string, lines []string, end bool)
	data func(s string)
	end  func(trailers []string)
	// method, if set, returns that of the request which a response answers.
	method func() string

	buf      string
	in       section
	left     int
	trailers []string
}

// section is where in a message the decoder stands.
type section uint8

const (
	atHead section = iota
	atBody
	atChunk     // its size
	inChunk     // its bytes
	atChunkEnd  // the line's end behind them
	atTrailers  // a line of them
	untilClosed // a body that the connection's end ends
	inTunnel    // bytes of another protocol
	notUnderstood
)

// feed reads on.
func (d *decoder) feed(text string) {
	d.buf += text
	for d.step() {
	}
}

// eof ends a body that the connection's end ends, and tells whether the text is whole.
func (d *decoder) eof() (whole bool) {
	switch {
	case d.in == untilClosed || d.in == inTunnel:
		d.in = atHead
		d.end(nil)
	case d.in != atHead || d.buf != "":
		return false
	}
	return true
}

func (d *decoder) step() (more bool) {
	switch d.in {
	case atHead:
		head, rest, ok := strings.Cut(d.buf, "\r\n\r\n")
		if ok {
			d.buf = rest
			lines := strings.Split(head, "\r\n")
			d.begin(lines[0], lines[1:])
		}
		return ok
	case atBody, inChunk:
		return d.bytes()
	case untilClosed, inTunnel:
		if d.buf != "" {
			s := d.buf
			d.buf = ""
			d.data(s)
		}
		return false
	case notUnderstood:
		return false
	}
	line, rest, ok := strings.Cut(d.buf, "\r\n")
	if !ok {
		return false
	}
	d.buf = rest
	switch d.in {
	case atChunkEnd:
		d.in = atChunk
	case atTrailers:
		if line == "" {
			d.in = atHead
			t := d.trailers
			d.trailers = nil
			d.end(t)
			return true
		}
		d.trailers = append(d.trailers, line)
	default:
		size, _, _ := strings.Cut(line, ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 31)
		if d.left, d.in = int(n), inChunk; err != nil {
			d.in = notUnderstood
		} else if n == 0 {
			d.in = atTrailers
		}
	}
	return true
}

// bytes passes on what there is of a body of a known length, or of a chunk.
func (d *decoder) bytes() (more bool) {
	n := min(d.left, len(d.buf))
	if n == 0 {
		return false
	}
	s := d.buf[:n]
	d.buf, d.left = d.buf[n:], d.left-n
	d.data(s)
	if d.left > 0 {
		return false
	}
	if d.in == inChunk {
		d.in = atChunkEnd
		return true
	}
	d.in = atHead
	d.end(nil)
	return true
}

// begin passes on a head, and finds out what follows it (RFC 9112, section 6.3).
func (d *decoder) begin(start string, lines []string) {
	length, _ := strconv.Atoi(value(lines, "content-length"))
	chunked := strings.EqualFold(value(lines, "transfer-encoding"), "chunked")
	next := atBody
	switch status := statusOf(start); {
	case d.response && status > 99 && status < 200 && status != 101:
		d.head(start, lines, false)
		return
	case d.response && (status == 101 || d.asked() == "CONNECT" && status < 300):
		next = inTunnel
	case d.response && (d.asked() == "HEAD" || status == 204 || status == 304):
		next = atHead
	case !d.response && (strings.HasPrefix(start, "CONNECT ") || value(lines, "upgrade") != "" && hasToken(value(lines, "connection"), "upgrade")):
		next = inTunnel
	case chunked:
		next = atChunk
	case length > 0:
		d.left = length
	case d.response && value(lines, "content-length") == "":
		next = untilClosed
	default:
		next = atHead
	}
	d.in = next
	d.head(start, lines, next == atHead)
}

func (d *decoder) asked() string {
	if d.method == nil {
		return ""
	}
	return d.method()
}

// statusOf is the status of a status line, 0 if it is none.
func statusOf(start string) int {
	if f := strings.Fields(start); len(f) > 1 {
		n, _ := strconv.Atoi(f[1])
		return n
	}
	return 0
}

// value returns the value of a header line, "" if there is none.
func value(lines []string, name string) string {
	for _, line := range lines {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(k, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func hasToken(list, token string) bool {
	for _, t := range strings.Split(list, ",") {
		if strings.EqualFold(strings.TrimSpace(t), token) {
			return true
		}
	}
	return false
}

// hop are the fields of a connection with HTTP/1, which HTTP/2 has not.
func hop(name string) bool {
	switch strings.ToLower(name) {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		return true
	}
	return false
}

// fields turns header lines into names and values of HTTP/2, without those of the connection.
func fields(lines []string) (nv []string) {
	for _, line := range lines {
		k, v, _ := strings.Cut(line, ":")
		if !hop(k) && !strings.EqualFold(k, "host") {
			nv = append(nv, strings.ToLower(k), strings.TrimSpace(v))
		}
	}
	return nv
}

// requestFields are the fields of HTTP/2 for a request's head as text.
func requestFields(start string, lines []string, scheme string) []string {
	f := strings.SplitN(start, " ", 3)
	for len(f) < 3 {
		f = append(f, "")
	}
	method, path, host := f[0], f[1], value(lines, "host")
	upgrade := value(lines, "upgrade")
	switch {
	case method == "CONNECT":
		return append([]string{":method", method, ":authority", path}, fields(lines)...)
	case upgrade != "" && hasToken(value(lines, "connection"), "upgrade"):
		return append([]string{":method", "CONNECT", ":protocol", upgrade, ":scheme", scheme, ":authority", host, ":path", path}, fields(lines)...)
	}
	nv := []string{":method", method, ":scheme", scheme}
	if host != "" {
		nv = append(nv, ":authority", host)
	}
	return append(append(nv, ":path", path), fields(lines)...)
}

// responseFields are the fields of HTTP/2 for a response's head as text.
func responseFields(start string, lines []string) []string {
	status := statusOf(start)
	if status == http.StatusSwitchingProtocols {
		status = http.StatusOK
	}
	return append([]string{":status", strconv.Itoa(status)}, fields(lines)...)
}

// requestText and responseText are the reverse: the start line and the lines.
func requestText(nv []string) (start string, lines []string) {
	p := map[string]string{}
	for i := 0; i < len(nv); i += 2 {
		if strings.HasPrefix(nv[i], ":") {
			p[nv[i]] = nv[i+1]
			continue
		}
		lines = append(lines, nv[i]+": "+nv[i+1])
	}
	method, path := p[":method"], p[":path"]
	switch {
	case p[":protocol"] != "":
		method = http.MethodGet
		lines = append(lines, "connection: Upgrade", "upgrade: "+p[":protocol"])
	case method == http.MethodConnect:
		path = p[":authority"]
	}
	if h := p[":authority"]; h != "" {
		lines = append([]string{"host: " + h}, lines...)
	}
	return method + " " + path + " HTTP/1.1", lines
}

func responseText(nv []string, protocol string) (start string, lines []string) {
	status := 0
	for i := 0; i < len(nv); i += 2 {
		if nv[i] == ":status" {
			status, _ = strconv.Atoi(nv[i+1])
			continue
		}
		lines = append(lines, nv[i]+": "+nv[i+1])
	}
	if status == http.StatusOK && protocol != "" {
		status = http.StatusSwitchingProtocols
		lines = append(lines, "connection: Upgrade", "upgrade: "+protocol)
	}
	reason := http.StatusText(status)
	if reason == "" {
		reason = "Unknown"
	}
	if status == http.StatusRequestEntityTooLarge {
		reason = "Payload Too Large" // as Envoy has it
	}
	return "HTTP/1.1 " + strconv.Itoa(status) + " " + reason, lines
}
