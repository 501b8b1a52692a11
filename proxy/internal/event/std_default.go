package event

import "fmt"

// Kinds of Driver that NewDriver knows.
const (
	KindEpoll = "epoll"
	KindStd   = "std"
)

// NewDriver returns the driver of one worker. kind is one of the kinds above, or empty for DefaultDriver.
func NewDriver(kind string) (Driver, error) {
	if kind == "" {
		kind = DefaultDriver()
	}
	switch kind {
	case KindEpoll:
		return newEpoll()
	case KindStd:
		return NewStd(), nil
	}
	return nil, fmt.Errorf("no I/O driver is called %q: there are %q (Linux) and %q", kind, KindEpoll, KindStd)
}
