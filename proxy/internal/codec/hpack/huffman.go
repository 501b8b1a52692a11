package hpack

// codeLen is the length in bits of each octet's code (RFC 7541, appendix B). The code is canonical: shorter codes come first, and
// codes of one length are numbered in the order of their octets, so that the lengths say everything. EOS has 30 bits.
var codeLen = [256]uint8{
	13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
	6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
	13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
	15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
	20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
	22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
	26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
	20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
}

const (
	eos        = 256
	maxCodeLen = 30
	// lookBits is how many bits one look into the decoding table resolves: two symbols, mostly.
	lookBits = 12
)

// pair is an entry of the decoding table: the symbols that begin with the entry's bits (octets 0 and 1), how many bits they take
// (octet 2) and how many symbols they are (octet 3), 0 if the first symbol's code is longer than lookBits.
type pair uint32

func (p pair) bits() uint { return uint(p>>16) & 63 }
func (p pair) count() int { return int(p >> 24) }

type huffmanTables struct {
	code [256]uint32 // right-aligned
	look [1 << lookBits]pair
	// The rest finds codes by length: those of length l are below limit[l] (left-aligned to 32 bits), first[l] is the first
	// of them and syms[base[l]] its symbol.
	limit, first [maxCodeLen + 1]uint64
	base         [maxCodeLen + 1]uint16
	syms         [257]uint16
}

var huff = makeHuffman()

func makeHuffman() *huffmanTables {
	t := new(huffmanTables)
	code, k := uint64(0), uint16(0)
	for l := uint(1); l <= maxCodeLen; l++ {
		code <<= 1
		t.first[l], t.base[l] = code<<(32-l), k
		for s := 0; s <= eos; s++ {
			if s == eos && l == maxCodeLen || s < eos && uint(codeLen[s]) == l {
				if s < eos {
					t.code[s] = uint32(code)
				}
				t.syms[k] = uint16(s)
				k++
				code++
			}
		}
		t.limit[l] = code << (32 - l)
	}
	for i := range t.look {
		v := uint64(i) << (64 - lookBits)
		a, la := t.find(v)
		if la > lookBits {
			continue
		}
		t.look[i] = pair(uint(a) | la<<16 | 1<<24)
		if b, lb := t.find(v << la); la+lb <= lookBits {
			t.look[i] = pair(uint(a) | uint(b)<<8 | (la+lb)<<16 | 2<<24)
		}
	}
	return t
}

// find returns the symbol that the left-aligned bits of acc begin with, and its length.
func (t *huffmanTables) find(acc uint64) (sym uint16, length uint) {
	v := acc >> 32
	for l := uint(5); l <= maxCodeLen; l++ {
		if v < t.limit[l] {
			return t.syms[uint64(t.base[l])+(v-t.first[l])>>(32-l)], l
		}
	}
	return eos, maxCodeLen
}

// huffmanMax is the most bytes that n bytes of Huffman code decode to, with room for the last write of a pair.
func huffmanMax(n int) int { return n*8/5 + 2 }

// huffmanDecode appends the decoded src to dst, which must have room for huffmanMax(len(src)) bytes.
func huffmanDecode(dst, src []byte) ([]byte, bool) {
	out := dst[:cap(dst)]
	w := len(dst)
	var acc uint64 // left-aligned, zero after nb bits
	var nb uint
	for len(src) >= 8 {
		// With 56 bits or more, four looks need no question whether there is enough.
		acc |= be64(src) >> (nb & 63)
		k := (63 - nb) >> 3
		src = src[k:]
		nb += k * 8
		acc &= ^uint64(0) << ((64 - nb) & 63)
		for range 4 {
			p := huff.look[acc>>(64-lookBits)]
			if p.count() == 0 {
				if nb < maxCodeLen {
					break
				}
				sym, l := huff.find(acc)
				if sym == eos {
					return out[:w], false
				}
				out[w] = uint8(sym)
				w++
				acc <<= l
				nb -= l
				break
			}
			o := out[w : w+2]
			o[0], o[1] = uint8(p), uint8(p>>8)
			w += p.count()
			acc <<= p.bits()
			nb -= p.bits()
		}
	}
	return huffmanTail(out, src, w, acc, nb)
}

// huffmanTail decodes the last bytes, where symbols and padding must be told apart.
func huffmanTail(out, src []byte, w int, acc uint64, nb uint) ([]byte, bool) {
	for {
		for len(src) > 0 && nb <= 56 {
			acc |= uint64(src[0]) << (56 - nb)
			nb += 8
			src = src[1:]
		}
		if p := huff.look[acc>>(64-lookBits)]; p.count() != 0 && p.bits() <= nb {
			out[w], out[w+1] = uint8(p), uint8(p>>8)
			w += p.count()
			acc <<= p.bits()
			nb -= p.bits()
			continue
		}
		sym, l := huff.find(acc)
		if l > nb {
			// What is left must be padding: less than an octet of ones (RFC 7541, section 5.2).
			return out[:w], nb < 8 && acc>>(64-nb) == 1<<nb-1
		}
		if sym == eos {
			return out[:w], false
		}
		out[w] = uint8(sym)
		w++
		acc <<= l
		nb -= l
	}
}

// huffmanLen returns how many bytes the code of s takes.
func huffmanLen(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		n += int(codeLen[s[i]])
	}
	return (n + 7) / 8
}

// appendHuffman appends the code of s.
func appendHuffman(dst []byte, s string) []byte {
	var acc uint64
	var nb uint
	for i := 0; i < len(s); i++ {
		l := uint(codeLen[s[i]])
		acc = acc<<l | uint64(huff.code[s[i]])
		nb += l
		if nb >= 32 {
			nb -= 32
			v := uint32(acc >> nb)
			dst = append(dst, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
	}
	for nb >= 8 {
		nb -= 8
		dst = append(dst, byte(acc>>nb))
	}
	if nb > 0 {
		dst = append(dst, byte(acc<<(8-nb))|byte(0xff>>nb))
	}
	return dst
}
