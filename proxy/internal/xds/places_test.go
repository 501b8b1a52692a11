package xds_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// faultfinder refuses all resources, for what stands at path in them.
type faultfinder struct{ path string }

func (f faultfinder) OnUpdate(u *sub.Update) error {
	var errs config.Errors
	for i := range u.Resources {
		r := &u.Resources[i]
		err := r.Err
		if err == nil {
			err = config.At(f.path, errors.New("refused"))
		}
		errs.Collect("", r.Named(err))
	}
	return errs.Err()
}

func (f faultfinder) OnFailure(sub.Reason, error) {}

const clusterA = "\n- \"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster\n  name: a\n"

// TestErrorsHaveTheirPlace: what consumers find wrong with a resource is told with file, line and column.
func TestErrorsHaveTheirPlace(t *testing.T) {
	const refused = "Filesystem config update rejected: "
	for _, c := range []struct {
		file, text, path string
		want             []string
	}{
		{"a.yaml", "resources:" + clusterA + "  type: STATIC\n", "type", []string{"a.yaml:4:9: resources[0].type: refused; found 'STATIC'"}},
		{"a.yaml", "resources:" + clusterA, "type", []string{"a.yaml:2:3: resources[0].type: refused"}},
		{"a.json", `{"resources": [{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "a"},` + "\n" + `{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "b"}]}`, "name",
			[]string{"a.json:1:89: resources[0].name: refused; found 'a'", "a.json:2:74: resources[1].name: refused; found 'b'"}},
		{"a.yaml", "resources:" + clusterA + clusterA, "name", []string{"a.yaml:3:9: resources[0].name: refused; found 'a'", "a.yaml:5:3: resources[1]: duplicate cluster a found"}},
		{"a.yaml", "resources:\n- \"@type\": type.googleapis.com/envoy.config.route.v3.VirtualHost\n  name: a\n", "",
			[]string{"a.yaml:2:12: resources[0]: Unable to unpack as envoy.config.cluster.v3.Cluster: envoy.config.route.v3.VirtualHost is another message"}},
		{"a.yaml", "resources:\n- \"@type\": type.googleapis.com/my.Cluster\n", "", []string{"a.yaml:2:12: resources[0]: Unable to unpack as envoy.config.cluster.v3.Cluster: my.Cluster is another message"}},
	} {
		r := newRig(t)
		r.files.Options = config.Options{AllowUnknownFields: true}
		r.disk[c.file] = c.text
		r.subscribe(c.file, clusterType, faultfinder{c.path})
		r.settle()
		var want []string
		if want = append(want, refused+strings.Join(c.want, "\n")); !cmp.Equal(want, r.warns) {
			t.Error(cmp.Diff(want, r.warns))
		}
	}
}

// TestLateSubscriptionsHavePlaces, too: those that come while the bytes are still there. Later the file is named.
func TestLateSubscriptionsHavePlaces(t *testing.T) {
	r := newRig(t)
	r.disk["a.yaml"] = "resources:\n- \"@type\": " + xdstype.Endpoint + "\n  cluster_name: a\n"
	r.subscribe("a.yaml", xdstype.Endpoint, faultfinder{"cluster_name"}, "a")
	r.settle()
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{0, "a.yaml:3:17: resources[0].cluster_name: refused; found 'a'"}, {time.Minute, "a.yaml: resources[0].cluster_name: refused"}} {
		r.clock.ahead += c.after
		r.settle()
		r.settle()
		r.subscribe("a.yaml", xdstype.Endpoint, faultfinder{"cluster_name"}, "a")
		r.settle()
		if got := r.warns[len(r.warns)-1]; got != "Filesystem config update rejected: "+c.want {
			t.Error(got)
		}
	}
}

// TestMissingValuesAreUnknownFields: a field that is misspelt is what the value that is missing was meant to be.
func TestMissingValuesAreUnknownFields(t *testing.T) {
	for text, want := range map[string][2]string{
		"  virtual_hosts: [{name: v, domains: [a], routes: [{match: {prefix: /}, rute: {cluster: c}}]}]\n": {"a.yaml:4:73: resources[0].virtual_hosts[0].routes[0].action: ",
			"; did you mean 'route'? (the unknown field 'rute' stands here)"},
		"  virtual_hosts: [{name: v, domans: [a]}]\n": {"a.yaml:4:29: resources[0].virtual_hosts[0].domains: ", "; did you mean 'domains'? (the unknown field 'domans' stands here)"},
	} {
		r := newRig(t)
		told := 0
		r.files.Options = config.Options{AllowUnknownFields: true, OnUnknownField: func(*config.Error) { told++ }}
		r.disk["a.yaml"] = "resources:\n- \"@type\": " + xdstype.Route + "\n  name: r\n" + text
		r.subscribe("a.yaml", xdstype.Route, faultfinder{}, "r")
		r.settle()
		if len(r.warns) != 1 || !strings.HasPrefix(r.warns[0], "Filesystem config update rejected: "+want[0]) || !strings.HasSuffix(r.warns[0], want[1]) || told != 1 {
			t.Errorf("%d unknown, %q", told, r.warns)
		}
	}
}

// TestNamesTakeThePlaceOfFiles where there is none.
func TestNamesTakeThePlaceOfFiles(t *testing.T) {
	r := &sub.Resource{Name: "a"}
	err := config.At("b", errors.New("wrong"))
	if got := r.Named(err).Error(); got != `resources["a"].b: wrong` {
		t.Error(got)
	}
	if got := r.Placed(err); !errors.Is(got, err) || r.Named(nil) != nil {
		t.Error(got)
	}
}

// TestEchoesOfAChange: writing a file causes several events. Those that come late cause no second reading of the same.
func TestEchoesOfAChange(t *testing.T) {
	r := newRig(t)
	r.files.Read = nil
	path := filepath.Join(t.TempDir(), "a.yaml")
	write := func(text string, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Unix(1700000000, 0)
	bad := "resources:" + clusterA
	write(bad, then)
	_, stat := r.subscribe(path, clusterType, faultfinder{"name"})
	r.settle()
	for _, c := range []struct {
		name   string
		change func()
		after  time.Duration
		want   uint64
	}{
		{"a late event", func() {}, 0, 1},
		{"another", func() {}, 0, 1},
		{"written anew, the same", func() { write(bad, then.Add(time.Second)) }, 0, 2},
		{"with other bytes at the same time", func() { write(bad+"  type: STATIC\n", then.Add(time.Second)) }, 0, 3},
		{"moved here later, with the same bytes and the same time", func() {}, 2 * time.Second, 4},
	} {
		c.change()
		r.clock.ahead += c.after
		r.watch[path](false)
		r.settle()
		r.clock.ahead += 25 * time.Millisecond
		r.settle()
		r.settle()
		if n := stat("update_rejected"); n != c.want {
			t.Errorf("%s: %d rejected, want %d", c.name, n, c.want)
		}
	}
	if n := stat("update_attempt"); n != 4 || len(r.warns) != 4 {
		t.Errorf("%d attempts, %q", n, r.warns)
	}
}
