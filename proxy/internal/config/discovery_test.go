package config_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

const clusterURL = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

func nobody(uint64) bool { return false }

// read returns what a reader finds.
func read(d *config.Discovery, name, text string, known func(uint64) bool) (list []config.Found, version string, err error) {
	data := []byte(text)
	version, err = d.Read(name, data, known, func(f config.Found) { list = append(list, f) })
	for i := range data {
		data[i] = 'x' // it may be overwritten
	}
	return list, version, err
}

var discoveryFiles = map[string]string{
	"a.json": `{"version_info": "7", "resources": [{"@type": "` + clusterURL + `", "name": "one", "connect_timeout": "1s"},
		{"name": "two", "@type": "` + clusterURL + `"}], "type_url": "x", "nonce": "n"}`,
	"camel.json": `{"resources": [{"@type": "` + clusterURL + `", "name": "one", "connectTimeout": "1s"}], "versionInfo": "8"}`,
	"twice.json": `{"resources": [{"@type": "` + clusterURL + `", "name": "one"}], "resources": [{"@type": "` + clusterURL + `", "name": "two"}]}`,
	"none.json":  `{"resources": null, "version_info": "9"}`,
	"empty.json": `{}`,
	"a.yaml": `version_info: "7"
resources:
- "@type": ` + clusterURL + `
  name: one
  connect_timeout: 1s
- {name: two, "@type": ` + clusterURL + `}
`,
}

// TestDiscoveryIsADiscoveryResponse compares with the reader that reads a file at once.
func TestDiscoveryIsADiscoveryResponse(t *testing.T) {
	for name, text := range discoveryFiles {
		want, _, err := config.ParseDiscoveryResponse(name, []byte(text), config.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list, version, err := read(config.NewDiscovery(config.Options{}), name, text, nobody)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []xdstype.Any
		for _, f := range list {
			if f.Err != nil {
				t.Fatalf("%s: %v", name, f.Err)
			}
			got = append(got, f.Resource)
		}
		if diff := cmp.Diff(want.Resources, got); diff != "" || version != want.Version {
			t.Errorf("%s: version %q, want %q\n%s", name, version, want.Version, diff)
		}
	}
}

// A resource may stand in a Resource, which gives it a name and a time to live.
func TestDiscoveryWrapped(t *testing.T) {
	wrap := func(rest string) string {
		return `{"resources": [{"@type": "type.googleapis.com/envoy.service.discovery.v3.Resource", ` + rest + `}]}`
	}
	for name, ext := range map[string]string{"json": "a.json", "yaml": "a.yaml"} {
		d := config.NewDiscovery(config.Options{})
		d.Want = clusterURL
		list, _, err := read(d, ext, wrap(`"name": "n", "version": "7", "ttl": "1.5s", "aliases": ["m"], "resource": {"@type": "`+clusterURL+`", "name": "one"}`), nobody)
		if err != nil || len(list) != 1 || list[0].Err != nil || list[0].Resource.TypeURL != xdstype.DeltaResource {
			t.Fatalf("%s: %+v %v", name, list, err)
		}
		r, err := xdstype.ParseResource(list[0].Resource.Value)
		if err != nil || r.Name != "n" || r.Version != "7" || r.TTL != 1500*time.Millisecond || r.Any.TypeURL != clusterURL || !strings.Contains(string(r.Any.Value), "one") {
			t.Errorf("%s: %+v %v", name, r, err)
		}
		for rest, want := range map[string]string{
			`"nam": "n"`: "no such field: 'nam'",
			`"resource": {"@type": "` + clusterURL + `", "name": ""}`:                   "resources[0].resource.name",
			`"resource": {"@type": "type.googleapis.com/google.protobuf.Empty"}`:        "Unable to unpack as envoy.config.cluster.v3.Cluster",
			`"ttl": "soon", "resource": {"@type": "` + clusterURL + `", "name": "one"}`: "resources[0].ttl",
		} {
			if list, _, err := read(d, ext, wrap(rest), nobody); err != nil || len(list) != 1 || list[0].Err == nil || !strings.Contains(list[0].Err.Error(), want) {
				t.Errorf("%s: %s: %+v %v, want %s", name, rest, list, err, want)
			}
		}
	}
}

func TestDiscoveryKnowsWhatItHasSeen(t *testing.T) {
	for _, name := range []string{"a.json", "a.yaml"} {
		d := config.NewDiscovery(config.Options{})
		seen := map[uint64]bool{}
		known := func(h uint64) bool { return seen[h] }
		list, _, _ := read(d, name, discoveryFiles[name], known)
		for _, f := range list {
			seen[f.Hash] = true
		}
		changed := strings.ReplaceAll(strings.ReplaceAll(discoveryFiles[name], "1s", "2s"), "7", "10")
		list, version, err := read(d, name, changed, known)
		if err != nil || version != "10" || len(list) != 2 {
			t.Fatalf("%s: %d resources, version %q, %v", name, len(list), version, err)
		}
		if list[0].Known || !strings.Contains(string(list[0].Resource.Value), "one") {
			t.Errorf("%s: the one that changed: %+v", name, list[0])
		}
		if !list[1].Known {
			t.Errorf("%s: the one that did not change: %+v", name, list[1])
		}
	}
}

func TestDiscoveryNamesWhatIsBad(t *testing.T) {
	good := `{"@type": "` + clusterURL + `", "name": "good"}`
	for name, x := range map[string]struct{ bad, want string }{
		"field":      {`{"@type": "` + clusterURL + `", "nam": "x"}`, `no such field: 'nam'`},
		"value":      {`{"@type": "` + clusterURL + `", "name": "x", "connect_timeout": "soon"}`, "resources[0].connect_timeout"},
		"rule":       {`{"@type": "` + clusterURL + `", "name": ""}`, "resources[0].name"},
		"type":       {`{"@type": "type.googleapis.com/no.such.Type"}`, "no.such.Type"},
		"no type":    {`{}`, "resources[0]"},
		"no map":     {`17`, "resources[0]"},
		"its syntax": {`{"@type": "` + clusterURL + `" "name": "x"}`, "a.json:1:80"},
	} {
		list, _, err := read(config.NewDiscovery(config.Options{}), "a.json", `{"resources": [`+x.bad+`, `+good+`]}`, nobody)
		if err != nil || len(list) != 2 {
			t.Errorf("%s: %d resources, %v", name, len(list), err)
			continue
		}
		if list[0].Err == nil || !strings.Contains(list[0].Err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", name, list[0].Err, x.want)
		}
		if list[1].Err != nil || !strings.Contains(string(list[1].Resource.Value), "good") {
			t.Errorf("%s: its sibling: %v", name, list[1].Err)
		}
	}
}

func TestDiscoveryRefusesWhole(t *testing.T) {
	for name, text := range map[string]string{
		"half.json": `{"resources": [{"@type": "` + clusterURL + `", "na`, "list.json": `[]`, "a.pb_text": "", "number.json": `{"resources": 7}`,
		"unknown.json": `{"nonsense": 1}`, "half.yaml": "resources: [{", "text.yaml": "hello", "a.pb": "\x01",
	} {
		if list, _, err := read(config.NewDiscovery(config.Options{}), name, text, nobody); err == nil {
			t.Errorf("%s: %d resources and no error", name, len(list))
		}
	}
}

// manyClusters is a file of n clusters, of which number i is at another port.
func manyClusters(n, i int) []byte {
	var list []any
	for k := range n {
		port := 80
		if k == i {
			port = 81
		}
		name := fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", k)
		address := map[string]any{"socket_address": map[string]any{"address": "10.0.0.1", "port_value": port}}
		list = append(list, map[string]any{"@type": clusterURL, "name": name, "type": "STATIC", "connect_timeout": "5s", "load_assignment": map[string]any{
			"cluster_name": name, "endpoints": []any{map[string]any{"lb_endpoints": []any{map[string]any{"endpoint": map[string]any{"address": address}}}}}}})
	}
	b, _ := json.Marshal(map[string]any{"version_info": "1", "resources": list})
	return b
}

// BenchmarkDiscovery is one changed cluster of 4,521.
func BenchmarkDiscovery(b *testing.B) {
	const n = 4521
	d := config.NewDiscovery(config.Options{})
	seen := map[uint64]bool{}
	files := [2][]byte{manyClusters(n, 1), manyClusters(n, 2)}
	load := func(data []byte) (fresh int) {
		_, err := d.Read("a.json", data, func(h uint64) bool { return seen[h] }, func(f config.Found) {
			if !f.Known {
				fresh++
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		return fresh
	}
	_, _ = d.Read("a.json", files[0], nobody, func(f config.Found) { seen[f.Hash] = true })
	b.SetBytes(int64(len(files[0])))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		if fresh := load(files[i%2]); fresh > 2 {
			b.Fatal(fresh)
		}
	}
}

func FuzzDiscovery(f *testing.F) {
	for name, text := range discoveryFiles {
		f.Add(text, strings.HasSuffix(name, ".yaml"))
	}
	f.Fuzz(func(t *testing.T, text string, yaml bool) {
		name := "a.json"
		if yaml {
			name = "a.yaml"
		}
		d := config.NewDiscovery(config.Options{})
		whole, _, wholeErr := config.ParseDiscoveryResponse(name, []byte(text), config.Options{})
		list, version, err := read(d, name, text, nobody)
		bad := err != nil
		for _, x := range list {
			bad = bad || x.Err != nil
		}
		if wholeErr != nil || slices.ContainsFunc(whole.Resources, func(a xdstype.Any) bool { return a.TypeURL == "" }) {
			return // lazier: what is skipped is not looked at
		}
		if bad {
			t.Fatalf("read at once it is good, in pieces it is not: %v", err)
		}
		if len(list) != len(whole.Resources) || version != whole.Version {
			t.Fatalf("%d resources of version %q, want %d of %q", len(list), version, len(whole.Resources), whole.Version)
		}
		again, _, _ := read(d, name, text, func(uint64) bool { return true })
		if len(again) != len(list) {
			t.Fatalf("%d resources, then %d", len(list), len(again))
		}
	})
}
