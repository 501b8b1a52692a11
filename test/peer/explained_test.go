//go:build peers

package peer_test

import (
	"bytes"
	"regexp"
	"strings"
)

// explained names the row of docs/differs.md that a difference belongs to, and is "" for those that nobody has explained.
func explained(d *finding) string {
	a, b := d.said[0], d.said[1]
	rest, longer := strings.CutPrefix(a.answer, b.answer)
	switch {
	case longer && bytes.Contains(d.in.bytes, []byte("HEAD")) && strings.HasSuffix(b.answer, "\r\n\r\n") && !statusLine.MatchString(rest):
		return "refused HEAD requests"
	case d.in.answer != nil:
		return explainedAnswer(d.in.answer.bytes, b.answer)
	case flooded(a.answer, b.answer) || flooded(b.answer, a.answer):
		return "responses that wait"
	case afterCR(d.in):
		return "one character after a CR at the end of a piece"
	case strings.Contains(b.answer, " 400 Bad Request") && crInFraming.Match(d.in.bytes):
		return "CR within framing fields"
	case len(twoCodings.FindAll(d.in.bytes, 2)) > 1:
		return "several transfer-encoding fields"
	}
	return ""
}

// explainedAnswer is explained for what an upstream said.
func explainedAnswer(said []byte, ours string) string {
	code := finalCode.FindSubmatch(said)
	switch {
	case strings.HasPrefix(ours, "HTTP/1.1 502 ") && code != nil && !threeDigits.Match(code[1]):
		return "status codes of other than three digits"
	case strings.HasPrefix(ours, "HTTP/1.1 502 ") && !goodLength.Match(said):
		return "unusable lengths of answers without a body"
	case crInFraming.Match(said) || len(twoCodings.FindAll(said, 2)) > 1:
		return "CR within framing fields"
	}
	return ""
}

var (
	finalCode   = regexp.MustCompile(`(?s)^(?:HTTP/1\.1\s+1\d\d.*?\n\r?\n)*HTTP/\d\.\d\s+(\S*)`)
	threeDigits = regexp.MustCompile(`^[1-9]\d\d$`)
	goodLength  = regexp.MustCompile(`(?i)content-length[ \t]*:[ \t]*\d+[ \t]*\r?\n[^ \t]`)
)

// flooded tells whether one proxy went on where the other had two responses that nobody had read yet, and ended it: which response is read by
// when is a matter of time.
func flooded(more, less string) bool {
	rest, ok := strings.CutPrefix(more, less)
	return ok && rest != "" && len(statusLine.FindAllString(less, 2)) == 2
}

// afterCR tells whether a piece ends in CR and a line of one character comes next: Envoy's parser takes that line for the end of the head.
func afterCR(in byteStream) bool {
	for _, c := range in.cuts {
		if rest := in.bytes[c:]; in.bytes[c-1] == '\r' && len(rest) > 3 && rest[0] == '\n' && rest[2] == '\n' {
			return true
		}
	}
	return false
}

var statusLine = regexp.MustCompile(`HTTP/1\.\d \d`)

var twoCodings = regexp.MustCompile(`(?im)^transfer-encoding[ \t]*:`)

// crInFraming is a CR in the value of a field that says where a message ends.
var crInFraming = regexp.MustCompile(`(?i)(content-length|transfer-encoding)([^\n]|\n[ \t])*[^\s]\r+[^\r\n]`)
