package gap_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dragoman-proxy/dragoman/internal/gap"
)

// The messages that describe messages have all that paths run through: lists, enums, booleans, messages in messages.
const file = "google.protobuf.FileDescriptorProto"

func TestFound(t *testing.T) {
	for _, c := range []struct {
		name, in string
		rows     []string
		want     []string
	}{
		{"nothing set", `{}`, []string{"name", "options.java_package"}, nil},
		{"a field", `{"name": "x", "package": "y"}`, []string{"name"}, []string{"name"}},
		{"a set field that has its default", `{"name": ""}`, []string{"name"}, []string{"name"}},
		{"below a message", `{"options": {"java_package": "x"}}`, []string{"options.java_package", "options.go_package"}, []string{"options.java_package"}},
		{"a list", `{"dependency": ["x"]}`, []string{"dependency"}, []string{"dependency"}},
		{"an empty list", `{"dependency": []}`, []string{"dependency"}, nil},
		{"below a list", `{"message_type": [{}, {"name": "x", "field": [{"name": "a"}, {"json_name": "b"}]}]}`,
			[]string{"message_type.field.json_name", "message_type.name"}, []string{"message_type[1].field[1].json_name", "message_type[1].name"}},
		{"an enum's value", `{"options": {"optimize_for": "SPEED"}}`, []string{"options.optimize_for=SPEED"}, []string{"options.optimize_for=SPEED"}},
		{"another value", `{"options": {"optimize_for": "CODE_SIZE"}}`, []string{"options.optimize_for=SPEED"}, nil},
		{"false is another value", `{"options": {"deprecated": false}}`, []string{"options.deprecated=true"}, nil},
		{"true", `{"options": {"deprecated": true}}`, []string{"options.deprecated=true"}, []string{"options.deprecated=true"}},
		{"all at once, in order", `{"name": "x", "options": {"java_package": "y"}, "package": "z"}`,
			[]string{"package", "options.java_package", "name"}, []string{"name", "options.java_package", "package"}},
		{"notes are the reader's", `{"name": "x", "package": "y", "syntax": "z"}`, []string{"name (other than y)", "!package", "~syntax (there is one)"}, nil},
		{"a message and what is below it", `{"options": {}}`, []string{"options", "options.java_package"}, []string{"options"}},
	} {
		m := &descriptorpb.FileDescriptorProto{}
		if err := protojson.Unmarshal([]byte(c.in), m); err != nil {
			t.Fatal(err)
		}
		table := gap.Of(file, c.rows...)
		if d := cmp.Diff(c.want, table.Found(m)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		if p := table.Problems(); p != nil {
			t.Errorf("%s: %v", c.name, p)
		}
	}
}

func TestFoundInOtherMessages(t *testing.T) {
	table := gap.Of(file, "name")
	if got := table.Found(&descriptorpb.DescriptorProto{Name: new("x")}); got != nil {
		t.Error(got)
	}
	if got := table.Found((*descriptorpb.FileDescriptorProto)(nil)); got != nil {
		t.Error(got)
	}
}

func TestRows(t *testing.T) {
	rows := []string{"name", "options.optimize_for=SPEED", "package (unless it is empty)", "options.deprecated=true (in some files)", "!syntax", "~edition (for a reason)"}
	want := []gap.Row{
		{Message: file, Field: "name"},
		{Message: file, Field: "options.optimize_for", Value: "SPEED"},
		{Message: file, Field: "package", Note: "unless it is empty", Own: true},
		{Message: file, Field: "options.deprecated", Value: "true", Note: "in some files", Own: true},
		{Message: file, Field: "syntax", Own: true},
		{Message: file, Field: "edition", Note: "for a reason", Ignored: true},
	}
	got := gap.Of(file, rows...).Rows()
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for i, r := range got {
		if r.String() != rows[i] {
			t.Errorf("%q, was %q", r, rows[i])
		}
	}
}

func TestProblems(t *testing.T) {
	for rows, want := range map[string]string{
		"nope":                       "has no field nope",
		"options.nope":               "google.protobuf.FileOptions has no field nope",
		"name.more":                  "nothing is below google.protobuf.FileDescriptorProto.name",
		"options.optimize_for=SPEDE": "options.optimize_for has no value SPEDE",
		"name,name":                  "name comes twice",
	} {
		got := gap.Of(file, strings.Split(rows, ",")...).Problems()
		if len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %v", rows, got)
		}
	}
	if got := gap.Of("no.such.Message", "x").Problems(); len(got) != 1 {
		t.Error(got)
	}
}

func TestForExtension(t *testing.T) {
	messages := []string{"a.v3.Config", "a.v3.PerRoute"}
	var got []string
	for _, table := range gap.ForExtension(messages, []string{"x", "PerRoute:y.z=true", "Other:w", "v (a: b)"}) {
		for _, r := range table.Rows() {
			got = append(got, table.Message()+" "+r.String())
		}
	}
	want := []string{"a.v3.Config x", "a.v3.Config Other:w", "a.v3.Config v (a: b)", "a.v3.PerRoute y.z=true"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := gap.ForExtension(messages, nil); got != nil {
		t.Error(got)
	}
}
