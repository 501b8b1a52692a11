//go:build !race

package route_test

const slow = false
