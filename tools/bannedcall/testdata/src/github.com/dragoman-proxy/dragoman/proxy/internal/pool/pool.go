package pool

import (
	"math/rand" // want `math/rand is banned in the data plane: use api/rand`
	randv2 "math/rand/v2"
	"net"
	"net/netip"
	"regexp"
	"time"
)

// A deadline is a value: only asking for the time is banned.
const grace = 5 * time.Second

var matcher = regexp.MustCompile("x") // want `regexp.MustCompile is banned in the data plane: use the regex of package match`

func use() {
	_ = time.Now()               // want `time.Now is banned in the data plane: take the time from the worker`
	_ = time.Since(time.Time{})  // want `time.Since is banned`
	<-time.After(grace)          // want `time.After is banned in the data plane: set a timer on the worker`
	time.Sleep(grace)            // want `time.Sleep is banned in the data plane`
	_ = time.NewTimer(grace)     // want `time.NewTimer is banned`
	time.AfterFunc(grace, use)   // want `time.AfterFunc is banned`
	_ = net.ParseIP("127.0.0.1") // want `net.ParseIP is banned in the data plane: use net/netip.ParseAddr`
	_, _ = netip.ParseAddr("127.0.0.1")
	_, _ = regexp.Compile("x") // want `regexp.Compile is banned`
	_ = matcher.MatchString("x")
	_ = rand.Int()
	_ = randv2.IntN(3) // want `math/rand/v2.IntN is banned in the data plane: use api/rand`
	_ = randv2.New(randv2.NewPCG(1, 2)).IntN(3)

	clock := time.Now // want `time.Now is banned`
	_ = clock

	_ = time.Now() //ban:allow bannedcall the start time is shown to people only

	//ban:allow bannedcall the start time is shown to people only
	_ = time.Now()

	//ban:allow bannedcall sic
	_ = time.Now() // want `needs a reason of at least two words`

	_ = time.Now() //ban:allow nakedgo another analyzer's allowance // want `time.Now is banned`
}

type clock struct{}

// Now is a method of ours.
func (clock) Now() time.Time { return time.Time{} }

func ours() { _ = clock{}.Now() }
