package dns

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"time"
)

// Types of records that we ask for or follow (RFC 1035, section 3.2.2; RFC 3596).
const (
	typeA     = 1
	typeCNAME = 5
	typeAAAA  = 28
	typeOPT   = 41
	classIN   = 1
)

// Response codes (RFC 1035, section 4.1.1).
const (
	rcodeSuccess  = 0
	rcodeNotFound = 3
)

// maxUDP is the size of answers that we take over UDP (RFC 6891, section 6.2.5).
const maxUDP = 1232

// maxChain bounds the CNAME records that are followed within an answer.
const maxChain = 16

var (
	errName    = errors.New("the name cannot be asked for")
	errMessage = errors.New("malformed answer")
	errForeign = errors.New("answer to another question")
)

// appendQuestion appends a question for name, which has no trailing dot needed, to dst.
func appendQuestion(dst []byte, id uint16, name string, typ uint16) ([]byte, error) {
	dst = binary.BigEndian.AppendUint16(dst, id)
	dst = append(dst, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1) // recursion desired; one question, one additional record
	at := len(dst)
	name = strings.TrimSuffix(name, ".")
	for label := range strings.SplitSeq(name, ".") {
		if len(label) == 0 || len(label) > 63 {
			return nil, errName
		}
		dst = append(dst, byte(len(label)))
		dst = append(dst, label...)
	}
	dst = append(dst, 0)
	if len(dst)-at > 255 {
		return nil, errName
	}
	dst = binary.BigEndian.AppendUint16(dst, typ)
	dst = binary.BigEndian.AppendUint16(dst, classIN)
	dst = append(dst, 0)
	dst = binary.BigEndian.AppendUint16(dst, typeOPT)
	dst = binary.BigEndian.AppendUint16(dst, maxUDP)
	return append(dst, 0, 0, 0, 0, 0, 0), nil
}

// answer is what a message says to a question.
type answer struct {
	addresses []Address
	rcode     int
	truncated bool
}

// parseAnswer reads the answer to a question for name and typ. A malformed message is an error, and so is one that does not belong
// to the question.
func parseAnswer(b []byte, id uint16, name string, typ uint16) (a answer, err error) {
	if len(b) < 12 {
		return a, errMessage
	}
	flags := binary.BigEndian.Uint16(b[2:])
	if binary.BigEndian.Uint16(b) != id || flags&0x8000 == 0 || binary.BigEndian.Uint16(b[4:]) != 1 {
		return a, errForeign
	}
	a.rcode, a.truncated = int(flags&15), flags&0x0200 != 0
	q, at, err := readName(b, 12)
	if err != nil || len(b) < at+4 {
		return a, errMessage
	}
	want := strings.TrimSuffix(name, ".")
	if !strings.EqualFold(q, want) || binary.BigEndian.Uint16(b[at:]) != typ || binary.BigEndian.Uint16(b[at+2:]) != classIN {
		return a, errForeign
	}
	if a.truncated {
		return a, nil
	}
	return a, a.records(b, at+4, int(binary.BigEndian.Uint16(b[6:])), want, typ)
}

// records reads n records: addresses of name, and of what it stands for.
func (a *answer) records(b []byte, at, n int, name string, typ uint16) error {
	ttl, chain := time.Duration(0), 0
	for range n {
		owner, next, err := readName(b, at)
		if err != nil || len(b) < next+10 {
			return errMessage
		}
		t, class := binary.BigEndian.Uint16(b[next:]), binary.BigEndian.Uint16(b[next+2:])
		life := time.Duration(binary.BigEndian.Uint32(b[next+4:])&(1<<31-1)) * time.Second
		size := int(binary.BigEndian.Uint16(b[next+8:]))
		data := next + 10
		if len(b) < data+size {
			return errMessage
		}
		at = data + size
		if class != classIN || !strings.EqualFold(owner, name) {
			continue
		}
		switch {
		case t == typeCNAME:
			if name, _, err = readName(b, data); err != nil {
				return errMessage
			}
			if chain++; chain > maxChain {
				return errMessage
			}
			if ttl == 0 || life < ttl {
				ttl = life
			}
		case t == typ && (t == typeA && size == 4 || t == typeAAAA && size == 16):
			ip, _ := netip.AddrFromSlice(b[data:at])
			if chain > 0 {
				life = min(life, ttl)
			}
			a.addresses = append(a.addresses, Address{IP: ip, TTL: life})
		}
	}
	return nil
}

// readName reads a name at at, and returns where what follows it begins.
func readName(b []byte, at int) (name string, next int, err error) {
	var out []byte
	next = -1
	// Each pointer must go back before where it was read from, so that a name ends.
	for limit := at; ; {
		if at >= len(b) {
			return "", 0, errMessage
		}
		n := int(b[at])
		switch {
		case n == 0:
			if next < 0 {
				next = at + 1
			}
			return string(out), next, nil
		case n < 64:
			if at+1+n > len(b) || len(out)+n+1 > 255 {
				return "", 0, errMessage
			}
			if len(out) > 0 {
				out = append(out, '.')
			}
			out = append(out, b[at+1:at+1+n]...)
			at += 1 + n
		case n >= 192 && at+1 < len(b):
			if next < 0 {
				next = at + 2
			}
			to := int(binary.BigEndian.Uint16(b[at:]) & 0x3fff)
			if to >= limit {
				return "", 0, errMessage
			}
			at, limit = to, to
		default:
			return "", 0, errMessage
		}
	}
}
