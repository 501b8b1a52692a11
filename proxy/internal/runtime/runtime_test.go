package runtime_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/runtime"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func load(t *testing.T, layers string) (*runtime.Loader, *stats.Store) {
	t.Helper()
	l, st, err := try(t, layers)
	if err != nil {
		t.Fatal(err)
	}
	return l, st
}

func try(t *testing.T, layers string) (*runtime.Loader, *stats.Store, error) {
	t.Helper()
	p := &bootstrapv3.LayeredRuntime{}
	if err := protojson.Unmarshal([]byte(`{"layers": [`+layers+`]}`), p); err != nil {
		t.Fatal(err)
	}
	st := stats.NewStore()
	l, err := runtime.New(p, "cluster1", st)
	return l, st, err
}

// TestValues says what each way to write a value means, as Envoy reads it.
func TestValues(t *testing.T) {
	l, _ := load(t, `{"name": "s", "static_layer": {"i": 7, "f": 1.5, "neg": -3, "b": true, "bs": "FALSE", "s": "abc", "ns": "12",
		"z": {"numerator": 5, "denominator": "TEN_THOUSAND"}, "nest": {"a": {"b": 1}, "c": "x"}, "big": 12345678901, "exp": 1e20, "k": 10000, "m": 1000000, "small": 0.00001234567, "third": 33.333333333, "zm": {"numerator": 1000000, "denominator": "MILLION"},
		"frac": "numerator: 3\ndenominator: MILLION", "inline": "{numerator: 4}", "pct": "50%", "none": {}}}`)
	s := l.Snapshot()
	type meaning struct {
		Raw  string
		Uint uint64
		F    float64
		B    bool
		Frac string
	}
	got := map[string]meaning{}
	for _, k := range s.Keys() {
		v, _ := s.Get(k)
		n, d := s.Fraction(k, 1, 2)
		got[k] = meaning{v.Raw, s.Uint(k, 99), s.Double(k, 99), s.Bool(k, k != "b"), fmt.Sprintf("%d/%d", n, d)}
	}
	want := map[string]meaning{
		"i": {"7", 7, 7, true, "7/100"}, "f": {"1.5", 99, 1.5, true, "1/2"}, "neg": {"-3", 99, -3, true, "1/2"},
		"b": {"true", 99, 99, true, "1/2"}, "bs": {"FALSE", 99, 99, false, "1/2"}, "s": {"abc", 99, 99, true, "1/2"},
		"ns": {"12", 12, 12, true, "12/100"}, "z": {"numerator: 5\ndenominator: TEN_THOUSAND", 99, 99, true, "5/10000"},
		"nest.a.b": {"1", 1, 1, true, "1/100"}, "nest.c": {"x", 99, 99, true, "1/2"},
		"big": {"1.23457e+10", 12345678901, 12345678901, true, "100/100"}, "exp": {"1e+20", 99, 1e20, true, "1/2"},
		"k": {"10000", 10000, 10000, true, "100/100"}, "m": {"1e+06", 1000000, 1000000, true, "100/100"}, "small": {"1.23457e-05", 99, 0.00001234567, true, "1/2"},
		"third": {"33.3333", 99, 33.333333333, true, "1/2"}, "zm": {"numerator: 1000000\ndenominator: MILLION", 99, 99, true, "1000000/1000000"},
		"frac": {"numerator: 3\ndenominator: MILLION", 99, 99, true, "3/1000000"}, "inline": {"{numerator: 4}", 99, 99, true, "4/100"},
		"pct": {"50%", 99, 99, true, "1/2"}, "none": {"", 99, 99, true, "1/2"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("envoy/frac/a", "100\n")
	write("envoy/frac/b", "# comment\n50")
	write("envoy/i", "5")
	write("envoy/cluster1/c", "7")
	disk := fmt.Sprintf(`{"name": "disk", "disk_layer": {"symlink_root": %q, "subdirectory": "envoy"}}`, dir)
	l, st := load(t, `{"name": "s", "static_layer": {"i": 1, "only": 2}},`+disk+`, {"name": "gone", "disk_layer": {"symlink_root": "/does/not/exist"}}, {"name": "adm", "admin_layer": {}}`)
	s := l.Snapshot()
	if d := cmp.Diff([]string{"s", "disk", "adm"}, s.Layers()); d != "" {
		t.Error("a folder that is not there is no layer:", d)
	}
	if d := cmp.Diff([]string{"cluster1.c", "frac.a", "frac.b", "i", "only"}, s.Keys()); d != "" {
		t.Error(d)
	}
	if got := s.Uint("i", 0); got != 5 {
		t.Errorf("the later layer wins: %d", got)
	}
	if got := s.Uint("frac.b", 0); got != 50 {
		t.Errorf("comment: %d", got)
	}
	if err := l.Modify(map[string]string{"i": "9", "new": "x"}); err != nil {
		t.Fatal(err)
	}
	now := l.Snapshot()
	if got := []string{now.InLayer(0, "i"), now.InLayer(1, "i"), now.InLayer(2, "i")}; !cmp.Equal(got, []string{"1", "5", "9"}) || s.Uint("i", 0) != 5 {
		t.Errorf("%v, and before %d", got, s.Uint("i", 0))
	}
	if err := l.Modify(map[string]string{"i": ""}); err != nil {
		t.Fatal(err)
	}
	if got := l.Uint("i", 0); got != 5 {
		t.Errorf("after the override went away: %d", got)
	}
	write("envoy/i", "6")
	l.Reload()
	if got := l.Uint("i", 0); got != 6 {
		t.Errorf("after a reload: %d", got)
	}
	page := string(stats.WriteAll(st.Text(stats.Query{})))
	for _, want := range []string{"runtime.num_keys: 6\n", "runtime.num_layers: 3\n", "runtime.admin_overrides_active: 1\n", "runtime.load_success: 4\n",
		"runtime.load_error: 0\n", "runtime.override_dir_exists: 0\n", "runtime.override_dir_not_exists: 4\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

func TestServiceCluster(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "cluster1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cluster1", "k"), []byte("3"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, _ := load(t, fmt.Sprintf(`{"name": "d", "disk_layer": {"symlink_root": %q, "append_service_cluster": true}}`, dir))
	if got := l.Uint("k", 0); got != 3 {
		t.Error(got)
	}
	if d := cmp.Diff([]string{dir}, l.Watched()); d != "" {
		t.Error(d)
	}
}

func TestRefused(t *testing.T) {
	for want, layers := range map[string]string{
		"Duplicate layer name: a":           `{"name": "a", "static_layer": {}}, {"name": "a", "static_layer": {}}`,
		"Too many admin layers":             `{"name": "a", "admin_layer": {}}, {"name": "b", "admin_layer": {}}`,
		"Invalid runtime entry value for n": `{"name": "a", "static_layer": {"n": null}}`,
		"Invalid runtime entry value for l": `{"name": "a", "static_layer": {"l": [1]}}`,
		"needs one of":                      `{"name": "a"}`,
	} {
		if _, _, err := try(t, layers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	l, _ := load(t, `{"name": "s", "static_layer": {}}`)
	if err := l.Modify(map[string]string{"a": "1"}); err != runtime.ErrNoAdminLayer {
		t.Error(err)
	}
}

func TestBounds(t *testing.T) {
	l, _ := load(t, `{"name": "a", "admin_layer": {}}`)
	for _, c := range []struct {
		n  int
		ok bool
	}{{runtime.MaxValueBytes, true}, {runtime.MaxValueBytes + 1, false}} {
		if err := l.Modify(map[string]string{"k": strings.Repeat("x", c.n)}); (err == nil) != c.ok {
			t.Errorf("a value of %d bytes: %v", c.n, err)
		}
	}
	many := map[string]string{}
	for i := range runtime.MaxKeys - 1 {
		many[fmt.Sprint("k", i)] = "1"
	}
	if err := l.Modify(many); err != nil {
		t.Errorf("%d keys: %v", runtime.MaxKeys, err)
	}
	if err := l.Modify(map[string]string{"one": "more"}); err == nil {
		t.Error("one key too many was taken")
	}
	if err := l.Modify(map[string]string{"k": "changed"}); err != nil {
		t.Errorf("a change at the limit: %v", err)
	}
}

func TestEnabledAndFeatures(t *testing.T) {
	l, _ := load(t, `{"name": "a", "static_layer": {"half": 50, "over": 300, "envoy.reloadable_features.x": false, "dragoman.reloadable_features.y": true, "envoy.reloadable_features.n": 4}}`)
	for _, c := range []struct {
		key    string
		random uint64
		want   bool
	}{{"half", 49, true}, {"half", 50, false}, {"over", 99, true}, {"unset", 9, true}, {"unset", 10, false}} {
		if got := l.Enabled(c.key, 10, c.random, 1000); got != c.want {
			t.Errorf("%s with %d: %v", c.key, c.random, got)
		}
	}
	if d := cmp.Diff(map[string]bool{"envoy.reloadable_features.x": false, "dragoman.reloadable_features.y": true}, l.Snapshot().Features()); d != "" {
		t.Error(d)
	}
	if n := testing.AllocsPerRun(100, func() { l.Enabled("half", 1, 7, 100) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseText(f *testing.F) {
	for _, s := range []string{"1", "true", "{numerator: 1}", "numerator: 1\ndenominator: HUNDRED", "1e400", "nan", "-0", "{,}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v := runtime.ParseText(s); v.Raw != s {
			t.Errorf("%q became %q", s, v.Raw)
		}
		_, _ = runtime.FromStruct(&structpb.Struct{Fields: map[string]*structpb.Value{"k": structpb.NewStringValue(s)}})
	})
}

// Layers from outside stand at their place among the others, empty until they have come.
func TestRemotes(t *testing.T) {
	l, _ := load(t, `{"name": "a", "static_layer": {"k": 1, "j": 1}}, {"name": "b", "rtds_layer": {"name": "x", "rtds_config": {"ads": {}}}}, {"name": "c", "static_layer": {"j": 3}}`)
	list := l.Remotes()
	if len(list) != 1 || list[0].Layer != "b" || list[0].Index != 1 || list[0].Resource != "x" || list[0].From.GetAds() == nil {
		t.Fatalf("%+v", list)
	}
	v, err := runtime.FromStruct(&structpb.Struct{Fields: map[string]*structpb.Value{"k": structpb.NewNumberValue(2), "j": structpb.NewNumberValue(2)}})
	if err != nil {
		t.Fatal(err)
	}
	if k := l.Uint("k", 0); k != 1 {
		t.Error(k)
	}
	if !l.Replace("b", v) || l.Uint("k", 0) != 2 || l.Uint("j", 0) != 3 {
		t.Error(l.Uint("k", 0), l.Uint("j", 0))
	}
}
