package config_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dragoman-proxy/dragoman/internal/gap"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

func TestRefuse(t *testing.T) {
	table := gap.Of("google.protobuf.FileDescriptorProto", "package", "message_type.name", "options.optimize_for=SPEED")
	m := &descriptorpb.FileDescriptorProto{Name: new("x")}
	if err := config.Refuse(table, m, ""); err != nil {
		t.Error(err)
	}
	m.MessageType = []*descriptorpb.DescriptorProto{{}, {Name: new("y")}}
	if err := config.Refuse(table, m, "a.b."); err == nil || err.Error() != "a.b.message_type[1].name: not supported yet" {
		t.Error(err)
	}
	m.Package, m.Options = new("z"), &descriptorpb.FileOptions{OptimizeFor: descriptorpb.FileOptions_SPEED.Enum()}
	want := "message_type[1].name: not supported yet\noptions.optimize_for: not supported yet; found SPEED\npackage: not supported yet"
	if err := config.Refuse(table, m, ""); err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestAt(t *testing.T) {
	one := &config.Error{Path: "b", Msg: "m"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("m"), "a: m"},
		{one, "a.b: m"},
		{&config.Error{Path: "[0].b", Msg: "m"}, "a[0].b: m"},
		{&config.Error{Msg: "m"}, "a: m"},
		{&config.Errors{List: []*config.Error{one, {Path: "c", Msg: "n"}}, More: 2}, "a.b: m\na.c: n\nand 2 more errors"},
	} {
		if got := config.At("a", c.err).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if one.Path != "b" {
		t.Error("the error itself was changed")
	}
	if err := config.At("a", nil); err != nil {
		t.Error(err)
	}
}
