// Package rand is the seam for chance. Each worker owns a Source; the simulation seeds them.
package rand

import (
	crand "crypto/rand"
	"math/rand/v2"
)

// Source is a stream of random numbers, good enough for identifiers (ChaCha8) and not safe for concurrent use.
type Source struct{ r *rand.ChaCha8 }

// New returns a Source seeded by the operating system.
func New() *Source {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails: it crashes the program instead (crypto/rand)
	return Seeded(seed)
}

// Seeded returns a Source that always gives the same numbers for the same seed.
func Seeded(seed [32]byte) *Source { return &Source{r: rand.NewChaCha8(seed)} }

// Uint64 returns 64 random bits.
func (s *Source) Uint64() uint64 { return s.r.Uint64() }

// Uint32 returns 32 random bits.
func (s *Source) Uint32() uint32 { return uint32(s.r.Uint64() >> 32) }

// IntN returns a number in [0, n). n must be positive. It is unbiased enough for load balancing (multiply-shift).
func (s *Source) IntN(n int) int {
	return int(uint64(uint32(s.r.Uint64()>>32)) * uint64(n) >> 32)
}

const hex = "0123456789abcdef"

// AppendUUID appends a random UUID (RFC 9562, version 4) to dst.
func (s *Source) AppendUUID(dst []byte) []byte {
	a, b := s.r.Uint64(), s.r.Uint64()
	a = a&^0xf000 | 0x4000
	b = b&^(3<<62) | 1<<63
	var u [36]byte
	k := 0
	for i := 60; i >= 0; i -= 4 {
		u[k] = hex[a>>uint(i)&15]
		k++
		if k == 8 || k == 13 || k == 18 {
			u[k] = '-'
			k++
		}
	}
	for i := 60; i >= 0; i -= 4 {
		u[k] = hex[b>>uint(i)&15]
		k++
		if k == 23 {
			u[k] = '-'
			k++
		}
	}
	return append(dst, u[:]...)
}
