package yamlpos_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"github.com/google/go-cmp/cmp"
)

// value turns a tree into what encoding/json would give, and checks on the way that the tree hangs together.
func value(t *testing.T, tree *yamlpos.Tree, n yamlpos.Node) any {
	if p := tree.Pos(n); p.Line < 1 || p.Col < 1 {
		t.Fatalf("a node at %v", p)
	}
	switch tree.Kind(n) {
	case yamlpos.Map, yamlpos.Seq:
		m, s, count := map[string]any{}, []any{}, 0
		for c := tree.First(n); c < tree.End(n); c = tree.End(c) {
			v := value(t, tree, c)
			m[string(tree.Key(c))] = v
			s = append(s, v)
			count++
		}
		if count != tree.Len(n) {
			t.Fatalf("%d children, Len says %d", count, tree.Len(n))
		}
		if tree.Kind(n) == yamlpos.Map {
			return m
		}
		return s
	case yamlpos.String:
		return string(tree.Text(n))
	case yamlpos.Number:
		return json.Number(tree.Text(n))
	case yamlpos.Bool:
		return tree.Bool(n)
	case yamlpos.Raw:
		sub, err := tree.Expand(n, nil)
		if err != nil {
			return err
		}
		return value(t, sub, sub.Root())
	}
	return nil
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"a": [1, -2.5e3, "x\u0041\ud83d\ude00\n", true, null, {}, []]}`, `{a: 'x', "b": 1,}`, `[1,]`, "\"\xff\"", `{"a":1}x`, `01`,
		`{"static_resources": {"clusters": [{"name": "a,]}"}, [{"b": 1}, null], 5], "listeners": []}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		tree, err := yamlpos.ParseJSON("f", src)
		if err == nil {
			got := value(t, tree, 0)
			var want any
			d := json.NewDecoder(bytes.NewReader(src))
			d.UseNumber()
			if json.Valid(src) && utf8.Valid(src) && d.Decode(&want) == nil {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%q: %s", src, diff)
				}
			}
			lazy, err := yamlpos.ParseJSONOutline("f", src, yamlpos.Outline{Parents: []string{"static_resources"}, Lists: []string{"clusters", "listeners"}})
			if err != nil {
				t.Errorf("outline of %q: %v", src, err)
			} else if diff := cmp.Diff(got, value(t, lazy, 0)); diff != "" {
				t.Errorf("outline of %q: %s", src, diff)
			}
		} else if json.Valid(src) && utf8.Valid(src) && !strings.Contains(err.Error(), "surrogate") && !strings.Contains(err.Error(), "deeper") {
			t.Errorf("%q is JSON: %v", src, err)
		}
		if lazy, err2 := yamlpos.ParseJSONOutline("f", src, yamlpos.Outline{Parents: []string{"static_resources"}, Lists: []string{"clusters"}}); err != nil && err2 == nil {
			value(t, lazy, 0)
		}
	})
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{
		"a: &x {k: [1, y, 'z']}\nb: {<<: *x, c: *x}\n", "{\"a\": 1, \"a\": 2}", "a: |\n  text\n? b\n: 0x10\n", "- - - x\n", "&a [*a]", "!ignore x: 1",
		"a: {<<: [{b: 1}, {c: 2}]}", "\ta: 1", "a: b: c", "%YAML 1.1\n---\na: ~",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 4096 {
			return // the library takes quadratic time on some long lines
		}
		if tree, err := yamlpos.ParseYAML("f", src); err == nil {
			value(t, tree, 0)
		}
	})
}
