package format

import (
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/stream"
)

// timeCommands print points in time and durations.
var timeCommands = map[string]command{
	"START_TIME":       {params, clockOp(startTime, false)},
	"START_TIME_LOCAL": {params, clockOp(startTime, true)},
	"EMIT_TIME":        {params, clockOp(emitTime, false)},
	"EMIT_TIME_LOCAL":  {params, clockOp(emitTime, true)},

	"DURATION":             duration(func(c *Context) (int64, int64) { return c.Info.Start, endOf(c) }),
	"REQUEST_DURATION":     duration(func(c *Context) (int64, int64) { return c.Info.Start, c.Info.RequestDone }),
	"REQUEST_TX_DURATION":  duration(func(c *Context) (int64, int64) { return c.Info.Start, c.Info.Upstream.LastTx }),
	"RESPONSE_DURATION":    duration(func(c *Context) (int64, int64) { return c.Info.Start, c.Info.Upstream.FirstRx }),
	"RESPONSE_TX_DURATION": duration(func(c *Context) (int64, int64) { return c.Info.Upstream.FirstRx, c.Info.ResponseDone }),
	"ROUNDTRIP_DURATION":   duration(func(*Context) (int64, int64) { return 0, 0 }), // of HTTP/3's acknowledgements only
	"UPSTREAM_CONNECTION_POOL_READY_DURATION": duration(func(c *Context) (int64, int64) {
		return c.Info.Start, c.Info.Upstream.PoolReady
	}),
	"DOWNSTREAM_HANDSHAKE_DURATION": duration(func(c *Context) (int64, int64) {
		if n := c.Info.Conn; n != nil {
			return n.Start, n.HandshakeDone
		}
		return 0, 0
	}),
	"COMMON_DURATION": {required, buildCommonDuration},
}

// endOf is the stream's end, the present while it lasts.
func endOf(c *Context) int64 {
	if c.Info.End != 0 {
		return c.Info.End
	}
	return c.Now
}

// duration is the time between two points, in ms. If one has not come there is none.
func duration(points func(c *Context) (from, to int64)) command {
	return command{bare, func(*builder) (*operator, error) { return between(points, time.Millisecond), nil }}
}

func between(points func(c *Context) (from, to int64), unit time.Duration) *operator {
	return &operator{number: true, append: func(dst []byte, c *Context) ([]byte, bool) {
		from, to := points(c)
		if from == 0 || to == 0 || to < from {
			return dst, false
		}
		return strconv.AppendInt(dst, (to-from)/int64(unit), 10), true
	}}
}

// points are the names that COMMON_DURATION knows. Others are accepted and never come, as in Envoy.
var points = map[string]func(i *stream.Info) int64{
	"DS_CX_BEG": func(i *stream.Info) int64 {
		if i.Conn == nil {
			return 0
		}
		return i.Conn.Start
	},
	"DS_RX_BEG": func(i *stream.Info) int64 { return i.Start },
	"DS_RX_END": func(i *stream.Info) int64 { return i.RequestDone },
	"DS_TX_BEG": func(i *stream.Info) int64 { return i.ResponseFirstTx },
	"DS_TX_END": func(i *stream.Info) int64 { return i.ResponseDone },
	"US_CX_BEG": func(i *stream.Info) int64 { return i.Upstream.ConnStart },
	"US_HS_END": func(i *stream.Info) int64 {
		if i.Upstream.Conn == nil {
			return 0
		}
		return i.Upstream.Conn.HandshakeDone
	},
	"US_TX_BEG": func(i *stream.Info) int64 { return i.Upstream.FirstTx },
	"US_TX_END": func(i *stream.Info) int64 { return i.Upstream.LastTx },
	"US_RX_BEG": func(i *stream.Info) int64 { return i.Upstream.FirstRx },
	"US_RX_END": func(i *stream.Info) int64 { return i.Upstream.LastRx },
}

func never(*stream.Info) int64 { return 0 }

func buildCommonDuration(b *builder) (*operator, error) {
	p := strings.Split(b.param, ":")
	if len(p) < 2 || len(p) > 3 {
		return nil, refuse("Invalid common duration configuration: %s.", b.param)
	}
	unit := time.Millisecond
	if len(p) == 3 {
		switch p[2] {
		case "ms":
		case "us":
			unit = time.Microsecond
		case "ns":
			unit = time.Nanosecond
		default:
			return nil, refuse("Invalid common duration precision: %s.", p[2])
		}
	}
	from, to := points[p[0]], points[p[1]]
	if from == nil {
		from = never
	}
	if to == nil {
		to = never
	}
	return between(func(c *Context) (int64, int64) { return from(c.Info), to(c.Info) }, unit), nil
}

func startTime(c *Context) int64 { return c.Info.StartWall }
func emitTime(c *Context) int64  { return c.Wall }

// errNewline refuses formats whose output could break a header.
var errNewline = refuse("Invalid header configuration. Format string contains newline.")

// clockOp prints a point in time. Without parameters it is ISO 8601 with milliseconds.
func clockOp(get func(c *Context) int64, local bool) func(b *builder) (*operator, error) {
	return func(b *builder) (*operator, error) {
		loc := time.UTC
		if local && b.opts.Local != nil {
			loc = b.opts.Local
		}
		format := b.param
		if format == "" {
			if !local {
				return &operator{append: func(dst []byte, c *Context) ([]byte, bool) { return c.iso.append(dst, get(c)), true }}, nil
			}
			format = "%Y-%m-%dT%H:%M:%E3S%z"
		}
		layout, err := compileTime(format)
		if err != nil {
			return nil, err
		}
		return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
			return layout.append(dst, time.Unix(0, get(c)).In(loc)), true
		}}, nil
	}
}

// isoCache holds the text of the last second that was printed.
type isoCache struct {
	second int64
	text   [len("2006-01-02T15:04:05")]byte
}

// append appends "2006-01-02T15:04:05.000Z".
func (c *isoCache) append(dst []byte, wall int64) []byte {
	second := floorDiv(wall, int64(time.Second))
	if second != c.second || c.text[0] == 0 {
		c.second = second
		appendSecond(c.text[:0], second)
	}
	dst = append(dst, c.text[:]...)
	f := int(wall-second*int64(time.Second)) / int(time.Millisecond)
	return append(dst, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10), 'Z')
}

func appendSecond(dst []byte, second int64) []byte {
	days := floorDiv(second, 86_400)
	s := int(second - days*86_400)
	y, m, d := civil(days)
	dst = append(appendPadded(dst, y, 4), '-')
	dst = append(append2(dst, m), '-')
	dst = append(append2(dst, d), 'T')
	dst = append(append2(dst, s/3600), ':')
	dst = append(append2(dst, s/60%60), ':')
	return append2(dst, s%60)
}

func append2(dst []byte, v int) []byte { return append(dst, byte('0'+v/10), byte('0'+v%10)) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// civil turns days since 1970 into a date of the proleptic Gregorian calendar (H. Hinnant, chrono-compatible date algorithms).
func civil(days int64) (year, month, day int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := int(z - era*146097)
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = doy - (153*mp+2)/5 + 1
	month = mp + 3
	year = yoe + int(era)*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// appendPadded appends v with at least width digits.
func appendPadded(dst []byte, v, width int) []byte {
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	return appendFilled(dst, v, width, '0')
}

// appendFilled appends v with fill before it, up to width characters.
func appendFilled(dst []byte, v, width int, fill byte) []byte {
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], int64(v), 10)
	for n := len(digits); n < width; n++ {
		dst = append(dst, fill)
	}
	return append(dst, digits...)
}
