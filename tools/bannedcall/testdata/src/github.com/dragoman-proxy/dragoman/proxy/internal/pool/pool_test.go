package pool

import (
	"testing"
	"time"
)

func TestPool(t *testing.T) {
	_ = time.Now()
	<-time.After(time.Nanosecond)
	time.Sleep(1) // want `time.Sleep is banned in tests: wait for what the test is about`
}
