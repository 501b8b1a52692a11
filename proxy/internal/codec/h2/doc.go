// Package h2 is the HTTP/2 codec (RFC 9113), both sides, with the limits and the strictness of Envoy's.
//
// It owns the framing of one connection: streams, header compression, flow control, the scheduling of bodies and the guards against
// floods. A session belongs to its connection's worker; streams and scratch memory come from the worker's Pool. It holds no
// socket, clock, goroutine or log: keepalive and time-outs are driven from outside by SendPing, Reset and GoAway. What it cannot parse
// becomes one of the preallocated errors of errors.go, never a panic.
//
// Where to begin: session.go holds the state machine that everything else hangs on.
package h2
