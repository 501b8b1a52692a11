package sim

// Kind is what happened.
type Kind uint8

// The kinds of things that go into the hash.
const (
	Step Kind = iota
	Connect
	Refused
	TimedOut
	Established
	Accepted
	Event
	Sent
	Received
	Delivered
	Stalled
	Fin
	FinDelivered
	Rst
	RstDelivered
	Closed
	ClockJumped
	PeerTimer
	PeerTurn
)

var kindNames = [...]string{
	"step", "connect", "refused", "timed out", "established", "accepted", "event", "sent", "received", "delivered", "stalled", "fin",
	"fin delivered", "rst", "rst delivered", "closed", "clock jumped", "peer timer", "peer turn",
}

// String returns a word or two.
func (k Kind) String() string { return kindNames[k] }

// FNV-1a, 64 bits, over words instead of bytes: the trace is short of nothing but time.
const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

// record adds something that happened to the hash. id is the end of a connection, or what else the kind is about.
func (w *World) record(k Kind, id uint32, n int) {
	h := w.hash
	h = (h ^ uint64(w.now)) * fnvPrime
	h = (h ^ uint64(k)<<32 ^ uint64(id)) * fnvPrime
	h = (h ^ uint64(n)) * fnvPrime
	h ^= h >> 29 // multiplication carries upwards only
	w.hash = h
	if w.Trace != nil {
		w.Trace(w.Elapsed(), k, id, n)
	}
}

// Hash returns a number that tells whether two runs were the same up to now: it covers what happened, when, to whom, in which
// order, and how many bytes were moved.
func (w *World) Hash() uint64 { return w.hash }
