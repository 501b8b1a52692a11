package hcm

//hot

import (
	"errors"
	"fmt"
	"strconv"
)

var errFull = errors.New("buffer is full")

var greeting = fmt.Sprintf("%d", 1)

func line(b []byte, n int) ([]byte, error) {
	_ = fmt.Sprintf("%d", n) // want `fmt.Sprintf allocates on a hot path: append to a buffer`
	if n < 0 {
		return nil, fmt.Errorf("negative: %d", n) // want `fmt.Errorf allocates`
	}
	if n > 9 {
		return nil, errors.New("large") // want `errors.New allocates on a hot path: make the error once`
	}
	if n == 9 {
		return nil, errFull
	}
	f := func() { fmt.Println(n) } // want `fmt.Println allocates`
	f()
	return strconv.AppendInt(b, int64(n), 10), nil
}

func cold(n int) string {
	return fmt.Sprint(n) //ban:allow hotfmt only the admin page asks for it
}
