package route

import (
	"strconv"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
)

// GRPCTimeout reads a grpc-timeout header: up to eight digits and a unit (gRPC over HTTP/2, "Requests"). Parts of a millisecond are
// rounded up. What is longer than a century is forever.
func GRPCTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	n, ok := parseUint(s[:len(s)-1])
	if !ok {
		return 0, false
	}
	d := time.Duration(n)
	switch s[len(s)-1] {
	case 'H':
		d = min(d, Forever/time.Hour) * time.Hour
	case 'M':
		d = min(d, Forever/time.Minute) * time.Minute
	case 'S':
		d *= time.Second
	case 'm':
		d *= time.Millisecond
	case 'u':
		d = (d*time.Microsecond + time.Millisecond - 1) / time.Millisecond * time.Millisecond
	case 'n':
		d = (d + time.Millisecond - 1) / time.Millisecond * time.Millisecond
	default:
		return 0, false
	}
	return d, true
}

// Forever is longer than any stream, and can be added to the time.
const Forever = 100 * 365 * 24 * time.Hour

// maxGRPCTimeout is what eight digits can say.
const maxGRPCTimeout = 99999999

// FormatGRPCTimeout writes d as a grpc-timeout header: in milliseconds if eight digits can hold them.
func FormatGRPCTimeout(a *http.Arena, d time.Duration) string {
	n, unit := int64(d/time.Millisecond), byte('m')
	if n > maxGRPCTimeout {
		n, unit = n/1000, 'S'
	}
	if n > maxGRPCTimeout {
		n, unit = n/60, 'M'
	}
	if n > maxGRPCTimeout {
		n, unit = min(n/60, maxGRPCTimeout), 'H'
	}
	var b [24]byte
	return a.Copy(append(strconv.AppendInt(b[:0], n, 10), unit))
}
