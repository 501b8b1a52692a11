package filter

// Callback names a filter callback that returns a status.
type Callback uint8

// The callbacks of the legality table.
const (
	CallbackHeaders Callback = iota
	Callback1xx
	CallbackData
	CallbackTrailers
)

// Verdict says what the engine does with a status.
type Verdict uint8

const (
	// Legal: as documented at the status.
	Legal Verdict = iota
	// LegalIgnored: allowed, and the same as Continue.
	LegalIgnored
	// IllegalReset: a bug of the filter. It is counted (bug_failures), logged with the filter's name, and the stream is reset.
	IllegalReset
)

// Rule is one row of the legality table.
type Rule struct {
	Callback Callback
	Status   uint8
	End      bool
	Verdict  Verdict
	Why      string
}

// Legality is the table of what a filter may return when: status x callback x end of stream. It is data, so that the engine,
// its tests and the documentation agree.
var Legality = []Rule{
	{CallbackHeaders, uint8(HeadersContinue), false, Legal, "passes on"},
	{CallbackHeaders, uint8(HeadersContinue), true, Legal, "passes on and ends"},
	{CallbackHeaders, uint8(HeadersStopIteration), false, Legal, "holds headers; data and trailers still come here"},
	{CallbackHeaders, uint8(HeadersStopIteration), true, Legal, "holds the whole message until Continue*"},
	{CallbackHeaders, uint8(HeadersContinueAndDontEndStream), false, IllegalReset, "there is no end to take back"},
	{CallbackHeaders, uint8(HeadersContinueAndDontEndStream), true, Legal, "passes on without the end, which stays until the filter injects it or Continue*"},
	{CallbackHeaders, uint8(HeadersStopAllIterationAndBuffer), false, Legal, "holds everything, buffering to the limit"},
	{CallbackHeaders, uint8(HeadersStopAllIterationAndBuffer), true, Legal, "nothing follows: holds the headers"},
	{CallbackHeaders, uint8(HeadersStopAllIterationAndWatermark), false, Legal, "holds everything, flow control at the limit"},
	{CallbackHeaders, uint8(HeadersStopAllIterationAndWatermark), true, Legal, "nothing follows: holds the headers"},
	{Callback1xx, uint8(HeadersContinue), false, Legal, "passes on"},
	{Callback1xx, uint8(HeadersStopIteration), false, Legal, "drops the informational response"},
	{Callback1xx, uint8(HeadersContinueAndDontEndStream), false, IllegalReset, "an informational response never ends a stream"},
	{Callback1xx, uint8(HeadersStopAllIterationAndBuffer), false, IllegalReset, "an informational response is not held"},
	{Callback1xx, uint8(HeadersStopAllIterationAndWatermark), false, IllegalReset, "an informational response is not held"},
	{CallbackData, uint8(DataContinue), false, Legal, "passes on, held headers first"},
	{CallbackData, uint8(DataContinue), true, Legal, "passes on and ends"},
	{CallbackData, uint8(DataStopIterationAndBuffer), false, Legal, "keeps all data so far"},
	{CallbackData, uint8(DataStopIterationAndBuffer), true, Legal, "keeps the whole body until Continue*"},
	{CallbackData, uint8(DataStopIterationAndWatermark), false, Legal, "keeps data, flow control at the limit"},
	{CallbackData, uint8(DataStopIterationAndWatermark), true, Legal, "keeps the whole body until Continue*"},
	{CallbackData, uint8(DataStopIterationNoBuffer), false, Legal, "the filter has taken what it wants"},
	{CallbackData, uint8(DataStopIterationNoBuffer), true, Legal, "the end stays until the filter injects it or Continue*"},
	{CallbackTrailers, uint8(TrailersContinue), true, Legal, "passes on, held headers and data first"},
	{CallbackTrailers, uint8(TrailersStopIteration), true, Legal, "holds the end until Continue*"},
}

// Judge looks a status up. What is not in the table is illegal.
func Judge(c Callback, status uint8, end bool) Verdict {
	for i := range Legality {
		if r := &Legality[i]; r.Callback == c && r.Status == status && r.End == end {
			return r.Verdict
		}
	}
	return IllegalReset
}
