package config

import (
	_ "embed"
	"slices"
	"strings"
)

// knownTypes are the proto packages, without "envoy.", in which Envoy 1.40 has extension types, one a line, each with its messages.
//
//go:embed known.txt
var knownTypes string

// knownToEnvoy tells whether a type is one of Envoy's, so that "not supported yet" can be told from a typing mistake. The list costs
// 29 KB in the binary and is only searched for an error.
func knownToEnvoy(name string) bool {
	return slices.Contains(knownMessages(packageOf(name)), lastWord(name))
}

// nearKnown is the type of Envoy's, in the package of name, that name may have meant, "" if none is like it.
func nearKnown(name string) string {
	pkg := packageOf(name)
	if s := nearest(lastWord(name), knownMessages(pkg)); s != "" {
		return pkg + "." + s
	}
	return ""
}

// knownMessages lists the messages of one of Envoy's packages.
func knownMessages(pkg string) []string {
	short, ok := strings.CutPrefix(pkg, "envoy.")
	if !ok {
		return nil
	}
	_, rest, ok := strings.Cut("\n"+knownTypes, "\n"+short+" ")
	if !ok {
		return nil
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Fields(line)
}

// packageOf cuts the message name off; a nested message keeps its parent, which is in no list.
func packageOf(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[:i]
	}
	return ""
}
