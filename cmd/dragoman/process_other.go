//go:build !unix

package main

import "os"

// reopenSignal is a signal that never comes: Windows has none for it.
var reopenSignal os.Signal = neverSignal{}

type neverSignal struct{}

func (neverSignal) Signal()        {}
func (neverSignal) String() string { return "none" }

// raiseLimits does nothing: there is no limit of descriptors to raise.
func raiseLimits() {}
