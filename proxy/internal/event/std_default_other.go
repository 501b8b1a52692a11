//go:build !linux

package event

import "errors"

// DefaultDriver returns the kind of driver that suits the system best.
func DefaultDriver() string { return KindStd }

func newEpoll() (Driver, error) { return nil, errors.New("the epoll driver is for Linux only") }
