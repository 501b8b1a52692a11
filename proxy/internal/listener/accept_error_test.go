package listener_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/socket"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// full is a driver of a process that has no file descriptor left.
type full struct{ event.Driver }

func (full) Listen(*event.ListenSpec) (event.Handle, error) { return 3, nil }
func (full) Add(event.Handle, uint32) syscall.Errno         { return 0 }
func (full) LocalAddress(event.Handle) (a network.Address)  { return a }
func (full) Wait([]event.Ready, time.Duration) int          { return 0 }
func (full) CloseHandle(event.Handle, bool)                 {}
func (full) Accept(event.Handle) (event.Handle, network.Address, syscall.Errno) {
	return event.NoHandle, network.Address{}, syscall.EMFILE
}

// handClock stands still until it is moved.
type handClock struct{ now int64 }

func (c *handClock) Now() time.Time { return time.Unix(0, c.now) }
func (c *handClock) Mono() int64    { return c.now }

var _ clock.Clock = (*handClock)(nil)

func TestAcceptErrorIsToldOnceAnEpisode(t *testing.T) {
	k := &handClock{now: int64(time.Hour)}
	w := event.New(event.Config{Name: "w", Driver: full{}, Clock: k, Rand: rand.Seeded([32]byte{}), Stats: stats.NewStore().Main()})
	var told []syscall.Errno
	l := &listener.Listener{Name: "l", OnAcceptError: func(e syscall.Errno) { told = append(told, e) }}
	a, err := listener.Open(l, w, socket.Kernel{})
	if err != nil {
		t.Fatal(err)
	}
	fail := func(after time.Duration) {
		k.now += int64(after)
		w.Step(false)
		a.OnReady(event.Readable)
	}
	fail(0)
	for range 5 {
		fail(200 * time.Millisecond)
	}
	if len(told) != 1 || told[0] != syscall.EMFILE {
		t.Fatalf("told %v, want one EMFILE", told)
	}
	fail(2 * time.Second)
	if len(told) != 2 {
		t.Errorf("told %d times after a pause, want 2", len(told))
	}
}
