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
