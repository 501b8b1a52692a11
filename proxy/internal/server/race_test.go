//go:build race

package server

// The race detector makes sync.Pool forget at random, and crypto/tls uses one.
func init() { poolsForget = true }
