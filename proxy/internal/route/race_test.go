//go:build race

package route_test

// slow: the race detector makes everything slower.
const slow = true
