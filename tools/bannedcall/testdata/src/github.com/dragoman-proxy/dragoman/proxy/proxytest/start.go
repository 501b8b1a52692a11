package proxytest

import "time"

func deadline() time.Time { return time.Now().Add(time.Second) }
