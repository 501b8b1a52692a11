package event

// DefaultDriver returns the kind of driver that suits the system best.
func DefaultDriver() string { return KindEpoll }

func newEpoll() (Driver, error) { return NewEpoll() }
