package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// placeholder stands in the corpus for names of files.
var placeholder = regexp.MustCompile(`@\{(\w+)\}`)

// asYAML takes a number and its text for the same where any kind may stand: YAML has integers of 32 bits only there.
var asYAML = protocmp.FilterMessage(&structpb.Value{}, cmp.FilterValues(func(a, b protocmp.Message) bool {
	return a["number_value"] != nil && b["string_value"] != nil
}, cmp.Comparer(func(a, b protocmp.Message) bool {
	if a["number_value"] == nil {
		a, b = b, a
	}
	x, _ := a["number_value"].(float64)
	s, _ := b["string_value"].(string)
	y, err := strconv.ParseFloat(s, 64)
	return err == nil && x == y
})))

// Real configurations have no difference from themselves, in whatever form they are written, and are the same messages then. The
// corpus is not part of this repository: CORPUS_DIR names a folder with bootstraps/.
func TestConfigCorpus(t *testing.T) {
	dir := os.Getenv("CORPUS_DIR")
	if dir == "" {
		t.Skip("CORPUS_DIR is not set")
	}
	files, err := filepath.Glob(filepath.Join(dir, "bootstraps", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	counts := map[string]int{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := configfile.Of(path, placeholder.ReplaceAll(data, []byte("/$1")), configfile.Options{AllowUnknownFields: true})
		if err != nil {
			counts["unreadable"]++
			continue
		}
		name := strings.TrimPrefix(path, dir)
		if c := configfile.Diff(f, f); len(c) > 0 {
			t.Errorf("%s differs from itself: %+v", name, c)
		}
		m, err := f.Bootstrap()
		if err != nil {
			counts["undecodable"]++
		} else {
			counts["decodable"]++
		}
		for _, form := range []configfile.Form{configfile.YAML, configfile.JSON, configfile.ProtoText, configfile.Proto} {
			text, err := f.Encode(form)
			if err != nil {
				if m != nil {
					t.Errorf("%s as %s: %v", name, form, err)
				}
				continue
			}
			g, err := configfile.Of("converted."+string(form), text, configfile.Options{AllowUnknownFields: true})
			if err != nil {
				t.Errorf("%s as %s: %v", name, form, err)
				continue
			}
			if c := configfile.Diff(f, g); len(c) > 0 {
				t.Errorf("%s as %s: %+v", name, form, c)
			}
			if m != nil {
				n, err := g.Bootstrap()
				if err != nil {
					t.Errorf("%s as %s: %v", name, form, err)
				} else if d := cmp.Diff(m, n, protocmp.Transform(), asYAML); d != "" {
					t.Errorf("%s as %s: %s", name, form, d)
				}
			}
			for _, back := range []configfile.Form{configfile.YAML, configfile.JSON} {
				text, err := g.Encode(back)
				if err != nil {
					t.Errorf("%s as %s: %v", name, form, err)
					continue
				}
				h, err := configfile.Of("converted."+string(back), text, configfile.Options{AllowUnknownFields: true})
				if err != nil {
					t.Errorf("%s as %s and %s: %v", name, form, back, err)
					continue
				}
				if c := configfile.Diff(f, h); len(c) > 0 && !(form == configfile.YAML && f.Form != configfile.YAML && len(configfile.Lost(f, g)) > 0) {
					t.Errorf("%s as %s and %s: %+v", name, form, back, c)
				}
			}
		}
	}
	t.Log(counts)
}
