package format_test

import (
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// 2026-11-29T23:07:03.105529Z, a Sunday; the results are Envoy 1.40's.
var start = time.Date(2026, 11, 29, 23, 7, 3, 105_529_000, time.UTC)

func TestTimes(t *testing.T) {
	for f, want := range map[string]string{
		"%START_TIME%":                                      "2026-11-29T23:07:03.105Z",
		"%START_TIME(%Y/%m/%dT%H:%M:%S%z %s)%":              "2026/11/29T23:07:03+0000 1795993623",
		"%START_TIME(%f)%":                                  "105529000",
		"%START_TIME(%1f %2f %3f %4f %5f %6f %7f %8f %9f)%": "1 10 105 1055 10552 105529 1055290 10552900 105529000",
		"%START_TIME(%s%3f %s.%6f)%":                        "1795993623105 1795993623.105529",
		"%START_TIME(%E3S %E*S %E6S %E0S %E9S %E4Y %Ez %E*z %E3f %E*f %E15S)%":         "03.105 03.105529 03.105529 03 03.105529000 2026 +00:00 +00:00:00 105 105529 03.105529000000000",
		"%START_TIME(%a|%A|%b|%B|%c|%C|%d|%D|%e|%F|%g|%G|%h|%H|%I|%j|%k|%l)%":          "Sun|Sunday|Nov|November|Sun Nov 29 23:07:03 2026|20|29|11/29/26|29|2026-11-29|26|2026|Nov|23|11|333|23|11",
		"%START_TIME(%m|%M|%p|%P|%r|%R|%S|%t|%T|%u|%U|%V|%w|%W|%x|%X|%y|%Y|%z|%Z|%%)%": "11|07|PM|pm|11:07:03 PM|23:07|03|\t|23:07:03|7|48|48|0|47|11/29/26|23:07:03|26|2026|+0000|UTC|%",
		"%START_TIME(%q|%Q|%i|%J|%K|%L|%N|%v|%+|%O|%Od|%Ey|%EY|%ET|%Ed|%OH|%Oy)%":      "%q|%Q|%i|%J|%K|%L|%N|%v|%+|%O|29|26|2026|T|%Ed|23|26",
		"%START_TIME(%:z|%::z|%:::z|%_d|%-d|%0e|%^a|%#a|%5Y|%E4Y)%":                    "+00:00|+00:00:00|+00|29|29|29|SUN|SUN|02026|2026",
		"%START_TIME(%)%":                 "%",
		"%START_TIME(%%f %%3f %%%3f)%":    "%105529000 %105 %105",
		"%START_TIME(%ES|%E|%E3)%":        "%ES|%E|%E3",
		"%START_TIME(x%sy)%":              "x1795993623y",
		"%START_TIME_LOCAL%":              "2026-11-29T18:07:03.105-0500",
		"%START_TIME_LOCAL(%Y %z %Z %H)%": "2026 -0500 EST 18",
		"%EMIT_TIME%":                     "2026-11-29T23:07:03.117Z",
		"%EMIT_TIME_LOCAL(%H.%3f %:::z)%": "18.117 -05",
	} {
		c := request()
		c.Info.StartWall = start.UnixNano()
		c.Wall = start.UnixNano() + 12*ms
		o := options()
		o.Local = time.FixedZone("EST", -5*3600)
		p, err := format.ParseText(f, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(p.Evaluate(nil, c)); got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", f, got, want)
		}
	}
}

// Single digits are padded as strftime pads them.
func TestPadding(t *testing.T) {
	c := request()
	c.Info.StartWall = time.Date(2021, 1, 3, 4, 5, 6, 7_000_000, time.UTC).UnixNano()
	want := " 3|03|3| 3| 4|4|04|01|003|AM|am|53|2020|00|00|06.007|.007"
	got := evaluate(t, "%START_TIME(%e|%d|%-d|%_d|%k|%-l|%I|%m|%j|%p|%#p|%V|%G|%W|%E0f00|%E*S|.%E3f)%", c)
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The default form agrees with the standard library on every day and at the edges of milliseconds.
func TestISO(t *testing.T) {
	for _, day := range []time.Time{time.Unix(0, 0).UTC(), time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC), time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC),
		time.Date(1900, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 12, 31, 23, 59, 59, 1, time.UTC)} {
		for i := range 800 {
			at := day.Add(time.Duration(i) * 24 * time.Hour)
			c := request()
			c.Info.StartWall = at.UnixNano()
			want := at.Format("2006-01-02T15:04:05.000Z")
			if got := evaluate(t, "%START_TIME%", c); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
	}
}
