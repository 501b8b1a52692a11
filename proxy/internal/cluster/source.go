package cluster

// source finds a cluster's hosts. owner: main loop.
type source interface {
	// start begins; ready is called once, when traffic may go to the cluster. It may be called inline.
	start(ready func())
	stop()
	// primary tells whether the source needs no other cluster to be ready.
	primary() bool
}
