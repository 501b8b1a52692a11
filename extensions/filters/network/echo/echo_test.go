package echo_test

import (
	"testing"

	echov3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/echo/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/echo"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

func TestEcho(t *testing.T) {
	n := filtertest.NewContext().Connect(t, &echo.Extension, &echov3.Echo{}, network.ConnInfo{})
	n.Receive("hello", false)
	n.Receive(" again", false)
	n.Receive("", true)
	if n.Sent != "hello again$" || n.Passed != "" || n.Left() != "" || n.Closed != "" || n.Live() != 0 {
		t.Errorf("%+v", n)
	}
}

// A peer that does not read is not read from, however often that is told.
func TestEchoStopsReading(t *testing.T) {
	n := filtertest.NewContext().Connect(t, &echo.Extension, &echov3.Echo{}, network.ConnInfo{})
	for _, step := range []struct {
		e    network.ConnEvent
		want int
	}{
		{network.BelowLowWatermark, 0}, {network.AboveHighWatermark, 1}, {network.AboveHighWatermark, 1}, {network.BelowLowWatermark, 0},
		{network.RemoteClose, 0},
	} {
		if n.Event(step.e); n.Pauses != step.want {
			t.Errorf("after event %d: %d pauses, want %d", step.e, n.Pauses, step.want)
		}
	}
}
