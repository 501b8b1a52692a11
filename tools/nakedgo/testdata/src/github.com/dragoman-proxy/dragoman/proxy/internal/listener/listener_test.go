package listener

import "testing"

func TestStart(t *testing.T) {
	done := make(chan bool)
	go close(done)
	<-done
}
