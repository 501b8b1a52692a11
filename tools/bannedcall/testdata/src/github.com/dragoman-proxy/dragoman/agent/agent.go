package agent

import (
	"regexp"
	"time"
)

var re = regexp.MustCompile("x")

func Now() time.Time { return time.Now() }
