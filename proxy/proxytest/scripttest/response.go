package scripttest

import (
	"strings"

	"golang.org/x/net/http2"
)

// Response is what a client got for a request, the same in every mode.
type Response struct {
	// Status is 0 before there is a head. Interim are the statuses of the 1xx heads before it.
	Status  int
	Interim []int
	// Lines are the fields, "name: value" as they came, without those of the connection.
	Lines    []string
	Body     string
	Trailers []string
	// Whole: it has ended as it should; Broken: it never will. Code is the error code of a reset of HTTP/2.
	Whole, Broken bool
	Code          http2.ErrCode
}

// Get returns the value of a field, "" if there is none.
func (r Response) Get(name string) string { return value(r.Lines, name) }

// headed takes note of a head.
func (r *Response) headed(start string, lines []string) {
	if s := statusOf(start); s > 99 && s < 200 && s != 101 {
		r.Interim = append(r.Interim, s)
		return
	}
	r.Status = statusOf(start)
	r.Lines = nil
	for _, l := range lines {
		if k, _, _ := strings.Cut(l, ":"); !hop(k) {
			r.Lines = append(r.Lines, l)
		}
	}
}
