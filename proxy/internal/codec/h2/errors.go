package h2

import (
	"errors"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// The error codes of RFC 9113, section 7.
const (
	codeNo              = 0x0
	codeProtocol        = 0x1
	codeInternal        = 0x2
	codeFlowControl     = 0x3
	codeStreamClosed    = 0x5
	codeFrameSize       = 0x6
	codeRefused         = 0x7
	codeCompression     = 0x9
	codeConnect         = 0xa
	codeEnhanceYourCalm = 0xb
)

// Envoy's response code details. Those of errors that its library finds by itself are not told apart.
const (
	detailsUnknown    = "http2.unknown.nghttp2.error"
	detailsBroken     = "codec_error:The_user_callback_function_failed" // of streams that others take along
	detailsMessaging  = "http2.violation.of.messaging.rule"
	detailsHeader     = "http2.invalid.header.field"
	detailsTooMany    = "http2.too_many_headers"
	detailsTooLarge   = "http2.header_list_size_too_large"
	detailsUnderscore = "http2.unexpected_underscore"
	detailsEmpty      = "http2.inbound_empty_frames_flood"
	detailsOutbound   = "http2.outbound_frames_flood"
	detailsReset      = "http2.remote_reset"
	detailsRefused    = "http2.remote_refuse"
)

func protocol(text string) *codec.Err { return connErr(text, codeProtocol) }

func connErr(text string, code uint32) *codec.Err {
	return &codec.Err{Text: text, Details: detailsUnknown, H2Code: code, Reason: http.ResetProtocolError}
}

func message(text, details string) *codec.Err {
	return &codec.Err{Text: text, Details: details, H2Code: codeProtocol, Reason: http.ResetProtocolError,
		Stat: "rx_messaging_error"}
}

func flood(text, details, stat string) *codec.Err {
	return &codec.Err{Text: text, Details: details, Reason: http.ResetProtocolError, Stat: stat, Flood: true}
}

// Errors of the connection that the peer is told of by GOAWAY.
var (
	errNoSettings      = protocol("SETTINGS expected")
	errFrameSize       = connErr("too large frame size", codeFrameSize)
	errPayloadSize     = connErr("wrong payload length", codeFrameSize)
	errContinuation    = protocol("unexpected non-CONTINUATION frame or stream_id is invalid")
	errNoHeaders       = protocol("CONTINUATION: unexpected")
	errStreamZero      = protocol("frame needs a stream")
	errNotStreamZero   = protocol("frame must not have a stream")
	errIdle            = protocol("frame on an idle stream")
	errEnded           = connErr("HEADERS: stream closed", codeStreamClosed)
	errStreamID        = protocol("invalid stream_id")
	errPadding         = protocol("DATA: invalid padding")
	errHeadersPadding  = protocol("HEADERS: invalid padding")
	errDataIdle        = protocol("DATA: stream in idle")
	errDataZero        = protocol("DATA: stream_id == 0")
	errPush            = protocol("PUSH_PROMISE: not allowed")
	errSettingsAck     = protocol("unexpected SETTINGS ACK")
	errSettingsCount   = connErr("SETTINGS: too many setting entries", codeEnhanceYourCalm)
	errSettingValue    = protocol("SETTINGS: invalid value")
	errSettingWindow   = connErr("SETTINGS: invalid SETTINGS_INITIAL_WINDOW_SIZE", codeFlowControl)
	errCompression     = connErr("header compression error", codeCompression)
	errContinuations   = connErr("too many CONTINUATION frames", codeEnhanceYourCalm)
	errConnWindow      = connErr("", codeFlowControl)
	errConnIncrement   = protocol("WINDOW_UPDATE: window_size_increment == 0")
	errConnOverflow    = connErr("WINDOW_UPDATE: connection window overflow", codeFlowControl)
	errTooManyFaults   = connErr("too many stream errors", codeEnhanceYourCalm)
	errPriorityDepends = protocol("depend on itself")
)

// errPreface ends the connection without a word: the peer does not speak HTTP/2.
var errPreface = &codec.Err{Text: "bad client magic byte string", Details: detailsUnknown, Reason: http.ResetProtocolError}

// Errors of one message. Unless Options.StreamErrorOnInvalid says otherwise they end the connection, without GOAWAY, as in Envoy.
var (
	errName           = message("invalid header name", detailsHeader)
	errValue          = message("invalid header value", detailsHeader)
	errPseudo         = message("invalid pseudo header", detailsHeader)
	errPseudoOrder    = message("pseudo header after regular header", detailsHeader)
	errConnHeader     = message("connection-specific header", detailsHeader)
	errTE             = message("te other than trailers", detailsHeader)
	errContentLength  = message("invalid content-length", detailsHeader)
	errMissing        = message("missing pseudo header", detailsMessaging)
	errPathForm       = message(":path is neither absolute nor *", detailsMessaging)
	errTrailers       = message("trailers without END_STREAM", detailsMessaging)
	errEarlyData      = message("DATA before the final head", detailsMessaging)
	errInfoEnd        = message("informational head ends the stream", detailsMessaging)
	errLengthMismatch = message("content-length does not match the body", detailsMessaging)
	errManyInfo       = message("too many informational heads", detailsMessaging)
	errUnderscore     = &codec.Err{Text: "underscore in a header name", Details: detailsUnderscore, H2Code: codeInternal,
		Reason: http.ResetRemote, Stat: "requests_rejected_with_underscores_in_headers"}
)

// Errors of one stream that never touch the connection.
var (
	errTooMany = &codec.Err{Text: "too many headers", Details: detailsTooMany, H2Code: codeInternal,
		Reason: http.ResetRemote, Stat: "header_overflow"}
	errTooLarge = &codec.Err{Text: "header list is too large", Details: detailsTooLarge, H2Code: codeInternal,
		Reason: http.ResetRemote, Stat: "header_list_size_too_large"}
	errBodyLength = &codec.Err{Text: "content-length does not match the body", Details: detailsReset, H2Code: codeProtocol,
		Reason: http.ResetProtocolError}
	errStreamWindow    = &codec.Err{Text: "stream window", Details: detailsUnknown, H2Code: codeFlowControl, Reason: http.ResetRemote}
	errStreamOverflow  = &codec.Err{Text: "WINDOW_UPDATE: stream window overflow", Details: detailsUnknown, H2Code: codeFlowControl, Reason: http.ResetRemote}
	errStreamIncrement = &codec.Err{Text: "WINDOW_UPDATE: window_size_increment == 0", Details: detailsUnknown, H2Code: codeProtocol, Reason: http.ResetRemote}
	errHalfClosed      = &codec.Err{Text: "frame after END_STREAM", Details: detailsUnknown, H2Code: codeStreamClosed, Reason: http.ResetRemote}
	errRefused         = &codec.Err{Text: "too many streams", Details: detailsUnknown, H2Code: codeRefused, Reason: http.ResetLocalRefused, Stat: "stream_refused_errors"}
)

// Floods (protocol constraints). The connection is closed at once.
var (
	errFloodEmpty    = flood("Too many consecutive frames with an empty payload", detailsEmpty, "inbound_empty_frames_flood")
	errFloodPriority = flood("Too many PRIORITY frames", detailsUnknown, "inbound_priority_frames_flood")
	errFloodUpdates  = flood("Too many WINDOW_UPDATE frames", detailsUnknown, "inbound_window_update_frames_flood")
	errFloodOutbound = flood("Too many frames in the outbound queue.", detailsOutbound, "outbound_flood")
	errFloodControl  = flood("Too many control frames in the outbound queue.", detailsOutbound, "outbound_control_flood")
)

// Errors of ClientStream.EncodeHeaders, in Envoy's words.
var (
	ErrMissingMethod    = errors.New("missing required header: :method")
	ErrMissingPath      = errors.New("missing required header: :path")
	ErrMissingAuthority = errors.New("missing required header: :authority")
)
