package docs_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/dragoman-proxy/dragoman/internal/contrib"
)

// No message of Envoy's own API is taken for one of contrib.
func TestContribHasNothingOfTheAPI(t *testing.T) {
	n := 0
	protoregistry.GlobalTypes.RangeMessages(func(mt protoreflect.MessageType) bool {
		n++
		if name := string(mt.Descriptor().FullName()); contrib.Has(name) || strings.HasPrefix(name, "envoy.") && contrib.Foreign(name) {
			t.Error(name)
		}
		return true
	})
	if n == 0 {
		t.Error("there are no messages")
	}
}
