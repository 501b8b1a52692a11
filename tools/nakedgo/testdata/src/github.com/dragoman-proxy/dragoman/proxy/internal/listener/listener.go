package listener

import "sync"

func start(f func()) {
	go f() // want `a goroutine of its own is banned here: Post to a worker`
	var wg sync.WaitGroup
	wg.Go(f) // want `sync.WaitGroup.Go starts a goroutine`
	wg.Wait()
	go f() //ban:allow nakedgo it only waits for the process to end
}

type group struct{}

func (group) Go(f func()) { f() }

func ours(f func()) { group{}.Go(f) }
