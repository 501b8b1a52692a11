package config

import (
	_ "embed"
	"strings"
)

// knownPackages are the proto packages, without "envoy.", in which Envoy 1.40 has extension types, one a line.
//
//go:embed known.txt
var knownPackages string

// knownToEnvoy tells whether a type's package is one of Envoy's, so that "not supported yet" can be told from a typing
// mistake. The list costs 20 KB in the binary and is only searched for an error.
func knownToEnvoy(name string) bool {
	pkg, ok := strings.CutPrefix(packageOf(name), "envoy.")
	return ok && strings.Contains("\n"+knownPackages, "\n"+pkg+"\n")
}

// packageOf cuts the message name off; a nested message keeps its parent, which is in no list.
func packageOf(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i]
	}
	return ""
}
