// Package version says which build this is, in the words that Envoy uses for it.
//
// It owns the revision and the Envoy version that the product stands in for. Everything is fixed when the binary is
// linked: the package keeps no state, may be called from any goroutine, and never reads files or starts programs.
package version

import (
	"runtime/debug"
	"strconv"
)

// Envoy is the release whose configuration, admin output and behaviour this build reproduces.
// Fleet tools read it out of /server_info and of the node of a discovery request, so it is not our own number.
const Envoy = "1.40.0"

// tlsLibrary stands where Envoy names the TLS library that it was linked with.
const tlsLibrary = "crypto-tls"

// unknownRevision is what Envoy's tools expect where the revision is not known: forty hex digits.
const unknownRevision = "0000000000000000000000000000000000000000"

// Set by the linker: -X github.com/dragoman-proxy/dragoman/internal/version.revision=SHA and so on.
// They are variables only because the linker can set nothing else; nothing in the program writes them.
var (
	// release is the product's own version, such as "0.3.0".
	release = "0.0.0-dev"
	// revision is the full git commit of the tree that was built.
	revision = ""
	// status is "Clean", or "Modified" where the tree had changes that are not in the commit.
	status = ""
)

// Release is the product's own version.
func Release() string { return release }

// Revision is the commit that was built, forty zeros where it is not known.
func Revision() string {
	rev, _ := build()
	return rev
}

// Status is "Clean", or "Modified" where the tree had changes beside the commit.
func Status() string {
	_, s := build()
	return s
}

// String is what --version and /server_info show: the five pieces that Envoy shows, in its order
// (revision, version, state of the tree, kind of build, TLS library), with a slash between them.
func String() string {
	rev, s := build()
	return rev + "/" + Envoy + "/" + s + "/RELEASE/" + tlsLibrary
}

// Gauge is the value of the gauge server.version: the first six hex digits of the revision as a number, as in Envoy.
func Gauge() uint64 { return gauge(Revision()) }

func gauge(rev string) uint64 {
	if len(rev) < 6 {
		return 0
	}
	n, err := strconv.ParseUint(rev[:6], 16, 64)
	if err != nil {
		return 0
	}
	return n
}

// Semantic is Envoy's version as the three numbers that core.v3.BuildVersion carries.
func Semantic() (major, minor, patch uint32) { return 1, 40, 0 }

// build returns the revision and the state of the tree: what the linker was told, else what the go command recorded
// (it does so where version control stamping is on), else that they are unknown.
func build() (rev, state string) {
	rev, state = revision, status
	if rev == "" {
		if info, ok := debug.ReadBuildInfo(); ok {
			rev, state = fromSettings(info.Settings)
		}
	}
	if rev == "" {
		rev = unknownRevision
	}
	if state == "" {
		state = "Clean"
	}
	return rev, state
}

func fromSettings(settings []debug.BuildSetting) (rev, state string) {
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			state = "Modified"
		}
	}
	return rev, state
}
