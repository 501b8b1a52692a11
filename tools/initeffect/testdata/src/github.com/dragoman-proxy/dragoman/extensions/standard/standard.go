package standard

import (
	"net/http"
	"strings"
)

var (
	table [256]bool
	names = map[string]int{}
	ch    chan int
)

// Filling in one's own tables is fine.
func init() {
	for i := range table {
		table[i] = i < len(table)/2
	}
	names["a"] = int(uint8(1))
	delete(names, "b")
}

func init() {
	names[strings.ToLower("A")] = 1                          // want `init calls a function: build the value where it is used`
	register()                                               // want `init calls a function`
	go register()                                            // want `init starts a goroutine`
	ch <- 1                                                  // want `init sends on a channel`
	http.DefaultClient = nil                                 // want `init assigns to a variable of another package`
	http.DefaultTransport.(*http.Transport).MaxIdleConns = 1 // want `init assigns to a variable of another package`
}

func init() {
	register() //ban:allow initeffect the encoding is only known to its own library
}

func register() {}

type T struct{}

func (T) init() { register() }
