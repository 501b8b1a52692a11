package clock

import (
	"net"
	"time"
)

func Now() time.Time { return time.Now() }

var local = net.ParseIP("127.0.0.1") // want `net.ParseIP is banned`
