package yamlpos_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

func lookup(name string) (string, bool) {
	v, ok := map[string]string{"PORT": "8080", "NAME": "a b", "EMPTY": "", "YES": "yes", "LINES": "a\nb: c", "QUOTE": `"}`, "U": "é"}[name]
	return v, ok
}

// substituted reads a text, JSON if it begins with an exclamation mark, and prints it, or what is wrong with it.
func substituted(t *testing.T, in string) string {
	t.Helper()
	parse := yamlpos.ParseYAML
	if in[0] == '!' {
		parse, in = yamlpos.ParseJSON, in[1:]
	}
	tree, err := parse("f", yamlpos.MaskVariables([]byte(in)))
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, e := range tree.Substitute(lookup) {
		out = append(out, e.Error())
	}
	if out != nil {
		return strings.Join(out, "\n")
	}
	return dump(tree, tree.Root(), false)
}

func TestSubstitute(t *testing.T) {
	for in, want := range map[string]string{
		"a: ${PORT}":                          "{a:8080,}",
		"a: '${PORT}'":                        `{a:"8080",}`,
		`a: "${PORT}"`:                        `{a:"8080",}`,
		"a: {b: ${PORT}, c: [${PORT},1]}":     "{a:{b:8080,c:[8080,1,],},}",
		"a: ${NO:-7}":                         "{a:7,}",
		"a: ${NO:-}":                          "{a:null,}",
		"a: ${EMPTY:-x}":                      `{a:"x",}`,
		"a: ${EMPTY}":                         "{a:null,}",
		"a: ${NO:-http://x:1/y?z#f, [g]}":     `{a:"http://x:1/y?z#f, [g]",}`,
		"a: {b: ${NO:-x, y}}":                 `{a:{b:"x, y",},}`,
		"a: ${YES}":                           "{a:true,}",
		"a: x${PORT}y${NAME}":                 `{a:"x8080ya b",}`,
		"a: ${LINES}":                         `{a:"a\nb: c",}`,
		"a: ${QUOTE}":                         `{a:"\"}",}`,
		"a: $${PORT}":                         `{a:"${PORT}",}`,
		"a: $PORT $ $$":                       `{a:"$PORT $ $$",}`,
		"a: |\n  x ${PORT}\n  y":              `{a:"x 8080\ny",}`,
		"${PORT}: 1 # ${NO}":                  "{${PORT}:1,}",
		"a: é${U}":                            `{a:"éé",}`,
		`!{"a": "${PORT}", "b": ["${NAME}"]}`: `{a:"8080",b:["a b",],}`,
		`{"a": "${PORT}"}`:                    `{a:"8080",}`,
		"a: 1\nb:  x${NO}":                    "f:2:6: the environment variable NO is not set: set it, or write ${NO:-default}",
		"b: {c: [1, '${NO} ${NO2}']}":         "f:1:13: the environment variable NO is not set: set it, or write ${NO:-default}\nf:1:19: the environment variable NO2 is not set: set it, or write ${NO2:-default}",
		`!{"a": "${NO}"}`:                     "f:1:8: the environment variable NO is not set: set it, or write ${NO:-default}",
		"a: '${a.b}'":                         "f:1:5: '${a.b}' is not a reference to a variable: write ${NAME} or ${NAME:-default}, or $${ for the two characters",
		"a: '${'":                             "f:1:5: '${' is not a reference to a variable: write ${NAME} or ${NAME:-default}, or $${ for the two characters",
	} {
		if d := cmp.Diff(want, substituted(t, in)); d != "" {
			t.Errorf("%s: %s", in, d)
		}
	}
}

// Elements that are read later are substituted then.
func TestSubstituteOutline(t *testing.T) {
	src := yamlpos.MaskVariables([]byte(`{"list": [{"a": "${PORT}"}, {"a": "${NO}"}]}`))
	tree, err := yamlpos.ParseJSONOutline("f", src, yamlpos.Outline{Lists: []string{"list"}})
	if err != nil {
		t.Fatal(err)
	}
	if errs := tree.Substitute(lookup); errs != nil {
		t.Fatal(errs)
	}
	list, _ := tree.Child(tree.Root(), "list")
	first := tree.First(list)
	into, err := tree.Expand(first, nil)
	if err != nil || dump(into, 0, false) != `{a:"8080",}` {
		t.Errorf("%v", err)
	}
	if _, err = tree.Expand(tree.End(first), into); err == nil || !strings.Contains(err.Error(), "f:1:36: the environment variable NO") {
		t.Error(err)
	}
}

func FuzzSubstitute(f *testing.F) {
	for _, s := range []string{"a: ${PORT}", "a: {b: ${NO:-}}", "${X}: $${Y", "a: '${", "a: |\n ${PORT}\n", "- ${EMPTY:-[1]}", `{"a": "${LINES}"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, parse := range []func(string, []byte) (*yamlpos.Tree, error){yamlpos.ParseYAML, yamlpos.ParseJSON} {
			tree, err := parse("f", yamlpos.MaskVariables([]byte(in)))
			if err != nil {
				continue
			}
			tree.Substitute(lookup)
			if got := dump(tree, tree.Root(), true); strings.ContainsRune(got, 0xE000) && !strings.ContainsRune(in, 0xE000) {
				t.Errorf("a mask stays: %s", got)
			}
		}
	})
}

func TestFormat(t *testing.T) {
	for in, want := range map[string]string{
		"a:   1\nb:\n    - x:  2\n      y: 3\n":                "a: 1\nb:\n- x: 2\n  y: 3\n",
		"# head\n\n\na: 1 # line\n\n# about b\nb: 2\n# foot\n": "# head\n\na: 1 # line\n\n# about b\nb: 2\n# foot\n",
		"{\"a\": 1,\n \"b\": [1,\n 2]}":                        "\"a\": 1\n\"b\":\n- 1\n- 2\n",
		"a: {b: 1, c: [1, 2]}\n":                               "a: {b: 1, c: [1, 2]}\n",
		"a: &x {b: 1}\nc:\n    <<: *x\n":                       "a: &x {b: 1}\nc:\n  <<: *x\n",
		"a: |\n    one\n\n    two\nb: 'q'\n\nc: \"d\"":         "a: |\n  one\n\n  two\nb: 'q'\n\nc: \"d\"\n",
		"a:\r\n    b: 1\r\n":                                   "a:\n  b: 1\n",
		"a:\n  - b: a long value of one line with no end\n\n  - c: 'and\n\n    another'\n\nd: 1\n": "a:\n- b: a long value of one line with no end\n\n- c: 'and\n\n    another'\nd: 1\n",
		"a: >-\n    {\n      b\n        c\n    }\n":                                                "a: |-\n  {\n    b\n      c\n  }\n",
		"admin:\n    address: x\n\nstatic:\n    l:\n\n    - a: 1\n    - b\n":                       "admin:\n  address: x\n\nstatic:\n  l:\n\n  - a: 1\n  - b\n",
	} {
		got, err := yamlpos.FormatYAML("f", []byte(in))
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%q: %s", in, d)
		}
		again, err := yamlpos.FormatYAML("f", got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%q: formatted twice: %v\n%s", in, err, again)
		}
	}
	for in, want := range map[string]string{
		"a: [":            "f:",
		"":                "the file is empty",
		"a: 1\n---\nb: 2": "f:2:1: the file has a second document",
	} {
		if _, err := yamlpos.FormatYAML("f", []byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{"a: 1 # x\n\nb: [1,\n2]", "# x\n- a\n\n- {b: c}", "a: |\n  x\n\n  y\n", "a: 'x\n\n  y'\n", "? a\n: b", "?", "- ? >-\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		out, err := yamlpos.FormatYAML("f", []byte(in))
		if err != nil {
			return
		}
		a, err := yamlpos.ParseYAML("f", []byte(strings.ReplaceAll(in, "\r\n", "\n")))
		b, err2 := yamlpos.ParseYAML("f", out)
		if err != nil || err2 != nil || dump(a, 0, false) != dump(b, 0, false) {
			t.Errorf("%q became %q: %s", in, out, fmt.Sprint(err, err2))
		}
	})
}

// TestEmptied has a tree know which variable has left nothing of a value.
func TestEmptied(t *testing.T) {
	for in, want := range map[string]string{"a: ${EMPTY}": "EMPTY", "a: '${EMPTY:-}'": "EMPTY", "a: x${EMPTY}": "", "a: ''": "", "a: {b: ${NAME}}": ""} {
		tree, err := yamlpos.ParseYAML("f", yamlpos.MaskVariables([]byte(in)))
		if err != nil {
			t.Fatal(err)
		}
		tree.Substitute(lookup)
		if got := tree.Emptied(tree.First(tree.Root())); got != want {
			t.Errorf("%s: %q", in, got)
		}
	}
}

// TestVariablesWithoutQuotes: within braces the text breaks at a variable that is not replaced, which is told at its place.
func TestVariablesWithoutQuotes(t *testing.T) {
	for in, want := range map[string]string{
		"a: 1\nb: {c: x, d: ${A:-1}}":                    "f:2:14: invalid YAML: did not find expected ',' or '}': ${A:-1} needs quotes within {...} and [...]: '${A:-1}'",
		"a: ${X}\nb: {c: '${Y}', d: [1, ${A}], e: ${B}}": "f:2:23: invalid YAML: did not find expected ',' or ']': ${A} needs quotes",
		"a: ${X}\nb: {c: '${Y}'":                         "f:2:4: invalid YAML: did not find expected ',' or '}'",
	} {
		if _, err := yamlpos.ParseYAML("f", []byte(in)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}
