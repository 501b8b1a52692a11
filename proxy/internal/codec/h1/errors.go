package h1

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

func bad(text, details string) *codec.Err {
	return &codec.Err{Text: "http/1.1 protocol error: " + text, Details: details, Status: 400, Body: "Bad Request",
		Reason: http.ResetProtocolError}
}

func tooLarge(text, details string) *codec.Err {
	e := bad(text, details)
	e.Status, e.Body = 431, "Request Header Fields Too Large"
	return e
}

const codecError = "http1.codec_error"

// The errors of the codec. Those with details "http1.codec_error" are syntax errors, which Envoy does not tell apart either.
var (
	ErrMethod         = bad("invalid method", codecError)
	ErrURL            = bad("invalid request target", codecError)
	ErrVersion        = bad("invalid version", codecError)
	ErrStatusLine     = bad("invalid status line", codecError)
	ErrFieldName      = bad("invalid header name", codecError)
	ErrFieldSyntax    = bad("invalid header line", codecError)
	ErrDuplicateCL    = bad("several content-length headers", codecError)
	ErrContentLength  = bad("unparsable content-length", codecError)
	ErrLoneCR         = bad("CR without LF", codecError)
	ErrChunkSize      = bad("invalid chunk size", codecError)
	ErrChunkExtension = bad("invalid chunk extension", codecError)
	ErrChunkEnd       = bad("data after chunk", codecError)
	ErrTrailer        = bad("invalid trailer", codecError)
	ErrNotHTTP        = bad("not an HTTP response", codecError)
	ErrUnexpectedEOF  = bad("connection closed within a message", codecError)

	ErrFieldValue  = bad("header value contains invalid chars", "http1.invalid_characters")
	ErrLengthAndTE = bad("both content-length and transfer-encoding are set", "http1.content_length_and_chunked_not_allowed")
	ErrInvalidURL  = bad("invalid url in request line", "http1.invalid_url")
	ErrScheme      = bad("invalid scheme", "http1.invalid_scheme")
	ErrAuthority   = bad("request headers failed spec compliance checks", "http.invalid_authority")
	ErrConnBody    = bad("unsupported content length", "http1.body_disallowed")
	ErrConnection  = bad("invalid nominated headers in connection", "http1.connection_header_rejected")
	ErrLengthNot   = bad("content length not allowed in 1xx or 204", "http1.content_length_not_allowed")
	ErrTENot       = bad("transfer encoding not allowed in 1xx or 204", "http1.transfer_encoding_not_allowed")

	ErrHeadTooLarge    = tooLarge("headers size exceeds limit", "http1.headers_too_large")
	ErrTrailerTooLarge = tooLarge("trailers size exceeds limit", "http1.headers_too_large")
	ErrTooManyHeaders  = tooLarge("headers count exceeds limit", "http1.too_many_headers")
	ErrTooManyTrailers = tooLarge("trailers count exceeds limit", "http1.too_many_headers")

	ErrTransferEncoding = &codec.Err{Text: "http/1.1 protocol error: unsupported transfer encoding",
		Details: "http1.invalid_transfer_encoding", Status: 501, Body: "Not Implemented", Reason: http.ResetProtocolError}
	ErrHTTPSWithoutTLS = &codec.Err{Text: "http/1.1 protocol error: https url on plaintext connection",
		Details: "http1.https_url_on_plaintext_connection", Status: 403, Body: "Forbidden", Reason: http.ResetProtocolError}
	ErrUnderscore = &codec.Err{Text: "http/1.1 protocol error: header name contains underscores",
		Details: "http1.unexpected_underscore", Status: 400, Body: "Bad Request", Reason: http.ResetProtocolError,
		Stat: "requests_rejected_with_underscores_in_headers"}
	ErrFlood = &codec.Err{Text: "too many responses queued", Details: "codec_error:Too_many_responses_queued.", Reason: http.ResetLocal, Stat: "response_flood", Flood: true}
	// ErrExtraneous: an upstream sends bytes that belong to no request of ours.
	ErrExtraneous = &codec.Err{Text: "http/1.1 protocol error: extraneous data after response complete",
		Reason: http.ResetProtocolError}
	// ErrPremature: an upstream answers on a connection that has no request; mostly a 408 as it closes.
	ErrPremature = &codec.Err{Text: "premature response on idle connection", Reason: http.ResetProtocolError}

	// What EncodeHeaders of a client stream refuses.
	ErrMissingMethod    = &codec.Err{Text: "missing required header: :method", Reason: http.ResetLocal}
	ErrMissingPath      = &codec.Err{Text: "missing required header: :path", Reason: http.ResetLocal}
	ErrMissingAuthority = &codec.Err{Text: "missing required header: host", Reason: http.ResetLocal}
	ErrInvalidField     = &codec.Err{Text: "invalid header name or value", Reason: http.ResetLocal}
	ErrMissingScheme    = &codec.Err{Text: "missing required header: :scheme", Reason: http.ResetLocal}
)
