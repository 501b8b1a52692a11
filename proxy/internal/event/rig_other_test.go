//go:build !linux

package event_test

var kinds = []kind{newReal("std"), newSim}
