//go:build peers

package peer_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// explained names the row of docs/differs.md that a difference belongs to, and is "" for those that nobody has explained. Each case is as narrow
// as its row: a difference of another kind in the same stream has no excuse.
func explained(d *finding) string {
	a, b := d.said[0], d.said[1]
	switch {
	case d.in.answer == nil && refusedHead(d.in.bytes, a.answer, b.answer):
		return "refused HEAD requests"
	case d.in.answer != nil:
		if bytes.Contains(d.in.bytes, []byte("upgrade: websocket")) && failedHandshake(a.answer, b.answer) {
			return "failed WebSocket handshakes"
		}
		return explainedAnswer(d.in, b.answer)
	case flooded(&a, &b) || flooded(&b, &a):
		return "responses that wait"
	case brokenPreface.Match(d.in.bytes) && a.answer == "":
		return "HTTP/2 prefaces in pieces"
	case linesBefore.Match(d.in.bytes) && strings.Contains(a.answer, "400 - http1.codec_error") && strings.HasPrefix(b.answer, "HTTP/1.1 431 "):
		return "an empty line before a head that is too large"
	case afterCR(d.in):
		return "one character after a CR at the end of a piece"
	case strings.Contains(b.answer, " 400 Bad Request") && crInFraming.Match(d.in.bytes):
		return "CR within framing fields"
	case chunkedAndEmpty.Match(d.in.bytes):
		return "chunked, then an empty transfer-encoding"
	}
	return ""
}

// explainedAnswer is explained for what an upstream said.
func explainedAnswer(in byteStream, ours string) string {
	said := in.answer.bytes
	code := finalCode.FindSubmatch(said)
	if !strings.HasPrefix(ours, "HTTP/1.1 502 ") || code == nil {
		return ""
	}
	switch noBody := bytes.HasPrefix(in.bytes, []byte("HEAD ")) || string(code[1]) == "304"; {
	case !threeDigits.Match(code[1]):
		return "status codes of other than three digits"
	case noBody && anyLength.Match(said) && !goodLength.Match(said):
		return "unusable lengths of answers without a body"
	case crInFraming.Match(said):
		return "CR within framing fields"
	}
	return ""
}

var (
	finalCode   = regexp.MustCompile(`(?s)^(?:HTTP/1\.1\s+1\d\d\b.*?\n\r?\n)*HTTP/\d\.\d\s+(\S*)`)
	threeDigits = regexp.MustCompile(`^[1-9]\d\d$`)
	anyLength   = regexp.MustCompile(`(?i)content-length[ \t]*:`)
	goodLength  = regexp.MustCompile(`(?i)content-length[ \t]*:[ \t]*\d+[ \t]*\r?\n[^ \t]`)
)

// refusedHead tells whether all that Envoy's answer has more is the body of its last response, which is an error to a HEAD request.
func refusedHead(said []byte, envoy, ours string) bool {
	body, longer := strings.CutPrefix(envoy, ours)
	if !longer || !bytes.Contains(said, []byte("HEAD")) || !strings.HasSuffix(ours, "\r\n\r\n") {
		return false
	}
	last := ours[max(0, strings.LastIndex(ours, "HTTP/1.")):]
	n := ownLength.FindStringSubmatch(last)
	return n != nil && n[1] == fmt.Sprint(len(body)) && refusals.MatchString(last)
}

var (
	ownLength = regexp.MustCompile(`(?i)\r\ncontent-length: (\d+)\r\n`)
	refusals  = regexp.MustCompile(`^HTTP/1\.[01] (400|403|426|431|501) `)
)

// failedHandshake tells whether the two answers to a handshake that the upstream refused differ in what its row says and nothing else: Envoy
// passes keep-alive on, gives 204 and 304 a body, and takes 1xx for the end, where ours waits for what comes next, which may be broken.
func failedHandshake(envoy, ours string) bool {
	if informed.MatchString(envoy) && (ours == "" || brokenAnswer.MatchString(ours)) {
		return true
	}
	head, body, _ := strings.Cut(keptAlive.ReplaceAllString(envoy, "\r\n"), "\r\n\r\n")
	if strings.HasPrefix(head, "HTTP/1.1 204 ") || strings.HasPrefix(head, "HTTP/1.1 304 ") {
		body = ""
	}
	return head+"\r\n\r\n"+body == ours && strings.Contains(strings.ToLower(head), "\r\ncontent-length: ")
}

var informed = regexp.MustCompile(`^HTTP/1\.1 1(0[4-9]|[1-9]\d) (?s:.*)websocket_handshake_unsuccessful|^HTTP/1\.1 1(0[4-9]|[1-9]\d) [^\r]*\r\ncontent-length: 0\r\n`)

var brokenAnswer = regexp.MustCompile(`^HTTP/1\.1 50[23] (?s:.*)(protocol_error|connection_termination|protocol error|connection termination)`)

var keptAlive = regexp.MustCompile(`(?i)(\r\nkeep-alive: [^\r]*)+\r\n`)

// flooded tells whether one proxy went on where the other had two responses that nobody had read yet, and ended it: which response is read by
// when is a matter of time. The one that ended it had made whole responses, and the next one of the other follows.
func flooded(more, less *talk) bool {
	rest, ok := strings.CutPrefix(more.answer, less.answer)
	return ok && less.closed && strings.HasPrefix(rest, "HTTP/1.1 ") && len(statusLine.FindAllString(less.answer, 2)) == 2
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

// brokenPreface is what Envoy takes for HTTP/2, whatever comes after it.
var brokenPreface = regexp.MustCompile(`^PRI \* HTTP/2`)

// linesBefore is one before a request, or a CR that is no end of a line: Envoy's parser looks at the first line before the size of the head then.
var linesBefore = regexp.MustCompile(`^[\r\n]`)

var statusLine = regexp.MustCompile(`HTTP/1\.\d \d`)

// chunkedAndEmpty are several transfer-encoding fields of one message of which the first is chunked and the last is empty.
var chunkedAndEmpty = regexp.MustCompile(`(?i)\ntransfer-encoding[ \t]*:\s*chunked[ \t\r]*\n([^\r\n][^\n]*\n)*?transfer-encoding[ \t]*:[ \t\r]*\n`)

// crInFraming is a CR in the value of a field that says where a message ends.
var crInFraming = regexp.MustCompile(`(?i)(content-length|transfer-encoding)([^\n]|\n[ \t])*[^\s][ \t\r]*\r[ \t\r]*[^\s]`)
