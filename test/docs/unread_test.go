package docs_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// mayBeUnread are messages that the proxy writes, or whose fields are a matter of those who read them.
var mayBeUnread = map[string]bool{
	"envoy.config.core.v3.Node":                         true,
	"envoy.config.core.v3.Extension":                    true,
	"envoy.config.cluster.v3.Cluster.CustomClusterType": true, // cluster_type has a row for the types there are
	"envoy.config.route.v3.RetryPolicy.RetryPriority":   true, // its predicate is one without fields
}

// TestEveryFieldIsDecided reads what tools/unread has found, from the file that UNREAD names: a field that no code reads is refused, or a
// row says why it may be ignored.
func TestEveryFieldIsDecided(t *testing.T) {
	name := os.Getenv("UNREAD")
	if name == "" {
		t.Skip("UNREAD names no list; make lint makes one")
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decided, ignored := decidedFields(), ignoredFields()
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		parts := strings.Fields(s.Text())
		if len(parts) != 4 {
			t.Fatalf("%q is not sign, package, message, field", s.Text())
		}
		n++
		message := messageOf(parts[1], parts[2])
		parts = parts[1:]
		if message == "" {
			t.Errorf("%s: no such message", s.Text())
			continue
		}
		if strings.HasPrefix(message, "envoy.admin.") || strings.HasPrefix(message, "envoy.service.") || mayBeUnread[message] {
			continue
		}
		if s.Text()[0] == '+' {
			if ignored[protoreflect.FullName(message+"."+parts[2])] {
				t.Errorf("%s: code reads %s, but a row says that it changes nothing", s.Text(), parts[2])
			}
			continue
		}
		if !decided[protoreflect.FullName(message+"."+parts[2])] {
			t.Errorf("%s: nothing reads %s: add a row to the table of the package that reads the message, or to the extension's Refused or Ignored", message, parts[2])
		}
	}
	if n == 0 {
		t.Errorf("%s is empty: the tool has found nothing at all", name)
	}
}

// decidedFields are those that rows end at, and those above them.
func decidedFields() map[protoreflect.FullName]bool {
	out := map[protoreflect.FullName]bool{}
	for _, row := range refused() {
		steps := strings.Split(row.Field, ".")
		for i := range steps {
			row.Field = strings.Join(steps[:i+1], ".")
			if fd := fieldOf(row); fd != nil {
				out[fd.FullName()] = true
			}
		}
	}
	return out
}

// ignoredFields are those that rows call without effect, wherever their message stands.
func ignoredFields() map[protoreflect.FullName]bool {
	out := map[protoreflect.FullName]bool{}
	for _, row := range refused() {
		if fd := fieldOf(row); row.Ignored && row.Value == "" && fd != nil && !shared(fd, row) {
			out[fd.FullName()] = true
		}
	}
	return out
}

// messageOf is the full name of a message, from its folder in the API and its name in Go: A_B is B in A.
func messageOf(folder, goName string) string {
	full := "envoy." + strings.ReplaceAll(folder, "/", ".") + "." + strings.ReplaceAll(goName, "_", ".")
	if _, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(full)); err != nil {
		return ""
	}
	return full
}
