package version

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
)

// The shape is what tools parse: istioctl and others split on the slash and want five pieces.
func TestStringHasEnvoysFivePieces(t *testing.T) {
	pieces := strings.Split(String(), "/")
	if len(pieces) != 5 {
		t.Fatalf("%q has %d pieces, want 5", String(), len(pieces))
	}
	if len(pieces[0]) != 40 {
		t.Errorf("revision %q has %d digits, want 40", pieces[0], len(pieces[0]))
	}
	if pieces[1] != Envoy {
		t.Errorf("version is %q, want %q", pieces[1], Envoy)
	}
	if pieces[2] != "Clean" && pieces[2] != "Modified" {
		t.Errorf("state of the tree is %q", pieces[2])
	}
	if pieces[3] != "RELEASE" {
		t.Errorf("kind of build is %q", pieces[3])
	}
}

func TestSemanticAgreesWithEnvoy(t *testing.T) {
	major, minor, patch := Semantic()
	if got := fmt.Sprintf("%d.%d.%d", major, minor, patch); got != Envoy {
		t.Errorf("Semantic says %s, Envoy says %s", got, Envoy)
	}
}

func TestGauge(t *testing.T) {
	for rev, want := range map[string]uint64{
		"9e5580933739775e8bce696a57a2e1bc99368f23": 0x9e5580,
		unknownRevision: 0,
		"":              0,
		"abc":           0,
		"zzzzzzz":       0,
	} {
		if got := gauge(rev); got != want {
			t.Errorf("gauge(%q) = %#x, want %#x", rev, got, want)
		}
	}
}

func TestFromSettings(t *testing.T) {
	rev, state := fromSettings([]debug.BuildSetting{
		{Key: "vcs", Value: "git"},
		{Key: "vcs.revision", Value: "0123456789012345678901234567890123456789"},
		{Key: "vcs.modified", Value: "true"},
	})
	if rev != "0123456789012345678901234567890123456789" || state != "Modified" {
		t.Errorf("got %q, %q", rev, state)
	}
	if rev, state := fromSettings(nil); rev != "" || state != "" {
		t.Errorf("nothing recorded gave %q, %q", rev, state)
	}
}
