package server

import (
	"runtime"
	"sync"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// threads runs event loops on threads of their own.
type threads struct{ wg sync.WaitGroup }

// start runs w until it is stopped, pinned to a thread or not. When it stops, its sockets are closed and its driver is freed.
func (t *threads) start(w *event.Worker, pinned bool, done func()) {
	t.wg.Add(1)
	go func() { //ban:allow nakedgo one goroutine per event loop, for its whole life
		defer t.wg.Done()
		if pinned {
			w.RunPinned()
		} else {
			w.Run()
		}
		if done != nil {
			done()
		}
		w.Driver.Close()
	}()
}

// sparePs tells whether so many workers leave Ps to everything else in the process.
func sparePs(workers int) bool { return runtime.GOMAXPROCS(0) > workers }

// wait returns when all loops have ended.
func (t *threads) wait() { t.wg.Wait() }

// Next: proxy/internal/listener/accept.go
