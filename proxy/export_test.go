package proxy

import "github.com/dragoman-proxy/dragoman/proxy/internal/event"

// Loops returns the main loop and the workers, for tests that look at what is left in them once Run has returned.
func (p *Proxy) Loops() []*event.Worker { return append([]*event.Worker{p.s.Main()}, p.s.Workers()...) }
