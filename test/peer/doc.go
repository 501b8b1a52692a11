// Package peer holds nothing but tests, behind the tag peers: they need programs of others (make test-peers).
package peer
