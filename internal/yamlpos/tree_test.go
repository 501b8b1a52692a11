package yamlpos_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"github.com/google/go-cmp/cmp"
)

// dump prints a tree in one line: kinds by their brackets, strings in quotes, places behind @ when asked for.
func dump(t *yamlpos.Tree, n yamlpos.Node, places bool) string {
	var b strings.Builder
	at := func(p yamlpos.Pos) {
		if places {
			fmt.Fprintf(&b, "@%d:%d", p.Line, p.Col)
		}
	}
	switch t.Kind(n) {
	case yamlpos.Map:
		b.WriteString("{")
		for c := t.First(n); c < t.End(n); c = t.End(c) {
			b.WriteString(string(t.Key(c)))
			at(t.KeyPos(c))
			b.WriteString(":" + dump(t, c, places) + ",")
		}
		b.WriteString("}")
	case yamlpos.Seq:
		b.WriteString("[")
		for c := t.First(n); c < t.End(n); c = t.End(c) {
			b.WriteString(dump(t, c, places) + ",")
		}
		b.WriteString("]")
	case yamlpos.String:
		fmt.Fprintf(&b, "%q", t.Text(n))
	case yamlpos.Bool:
		fmt.Fprintf(&b, "%v", t.Bool(n))
	case yamlpos.Null:
		b.WriteString("null")
	default:
		b.Write(t.Text(n))
	}
	at(t.Pos(n))
	return b.String()
}

// The scalars were given to Envoy 1.40, which printed what it had read.
func TestYAMLScalars(t *testing.T) {
	for in, want := range map[string]string{
		"abc": `"abc"`, "'5'": `"5"`, `"5"`: `"5"`, "5": "5", "+5": "5", "-0": "0", "-7": "-7",
		"1.5": `"1.5"`, "1e3": `"1e3"`, ".5": `".5"`, "5.": `"5."`, ".inf": `".inf"`, "1_000": `"1_000"`,
		"0x10": "16", "-0x10": "-16", "010": "8", "08": `"08"`, "0o10": `"0o10"`, "0b11": `"0b11"`,
		"2147483648": "2147483648", "99999999999999999999": `"99999999999999999999"`,
		"y": "true", "Y": "true", "yes": "true", "YES": "true", "Yes": "true", "yEs": `"yEs"`, "on": "true",
		"n": "false", "no": "false", "off": "false", "False": "false", "tRue": `"tRue"`, "'true'": `"true"`,
		"~": "null", "null": "null", "Null": "null", "NULL": "null", "": "null", "nUll": `"nUll"`,
		"!!str 5": "5", "!!int '5'": "5", "!!float 3": "3", "!foo 5": "5",
		"2020-01-01": `"2020-01-01"`, "1:30": `"1:30"`, "|-\n  5": `"5"`, ">-\n  y": `"y"`,
	} {
		tree, err := yamlpos.ParseYAML("f.yaml", []byte("a: "+in+"\n"))
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if got := dump(tree, 0, false); got != "{a:"+want+",}" {
			t.Errorf("%q = %s, want %s", in, got, want)
		}
	}
}

func TestYAMLTrees(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"the last duplicate wins", "{a: 1, b: 2, a: 3}", `{a:3,b:2,}`},
		{"anchors", "a: &x {k: [1, v]}\nb: *x", `{a:{k:[1,"v",],},b:{k:[1,"v",],},}`},
		{"a merge key is a key", "a: &x {k: 1}\nb: {l: 3, <<: *x}", `{a:{k:1,},b:{l:3,<<:{k:1,},},}`},
		{"the last merge key wins", "- &x {k: 1}\n- &y {m: 3}\n- {<<: *x, <<: *y}", `[{k:1,},{m:3,},{<<:{m:3,},},]`},
		{"a quoted merge key is a key", `{"<<": 1}`, `{<<:1,}`},
		{"ignored keys", "{a: 1, !ignore b: &x 2, c: *x}", `{a:1,c:2,}`},
		{"keys stay text", "{5: a, 0x10: b, true: c, ~: d}", `{5:"a",0x10:"b",true:"c",null:"d",}`},
		{"first document only", "a: 1\n---\nb: 2", `{a:1,}`},
		{"JSON by YAML rules", `{"a": 1.5, "b": "1", "c": 3, "d": true, "e": null}`, `{a:"1.5",b:"1",c:3,d:true,e:null,}`},
		{"JSON with duplicates", `{"a": {"x": 1}, "a": {"y": 2}}`, `{a:{y:2,},}`},
		{"JSON with a comment", "{\"a\": 1, # why\n \"b\": 2}", `{a:1,b:2,}`},
		{"single quotes of YAML", `{"a": 'it''s'}`, `{a:"it's",}`},
		{"a folded string", "{\"a\": \"x\n  y\"}", `{a:"x y",}`},
		{"comment only", "# nothing", "null"},
	} {
		tree, err := yamlpos.ParseYAML("f.yaml", []byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, dump(tree, 0, false)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestJSONTrees(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"a": [1, -2.5e3, "x", true, false, null, {}, []]}`, `{a:[1,-2.5e3,"x",true,false,null,{},[],],}`},
		{`{"a\u0041\ud83d\ude00\n\"": "\/\b\f\r\t\\"}`, `{aA😀` + "\n" + `":"/\b\f\r\t\\",}`},
		{`{a: 'x"y', "b": "it's", }`, `{a:"x\"y",b:"it's",}`},
		{`[1,]`, `[1,]`},
		{`{"a":1,"a":2}`, `{a:1,a:2,}`},
		{"{\"a\": \"x\ty\nz\"}", `{a:"x\ty\nz",}`},
		{" \n\t{ } \n", `{}`},
		{`"ä"`, `"ä"`},
	} {
		tree, err := yamlpos.ParseJSON("f.json", []byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if diff := cmp.Diff(c.want, dump(tree, 0, false)); diff != "" {
			t.Errorf("%s: %s", c.in, diff)
		}
	}
}

func TestPlaces(t *testing.T) {
	want := `{äb@2:3:[1@2:9,{x@2:13:"y"@2:18,}@2:12,]@2:8,c@3:3:{}@4:5,}@1:1`
	json := "{\n  \"äb\":[1, {\"x\": \"y\"}],\n  \"c\":\n    {}}"
	tree, err := yamlpos.ParseJSON("f.json", []byte(json))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, dump(tree, 0, true)); diff != "" {
		t.Error("JSON", diff)
	}
	want = `{a@2:1:{b@3:3:"ü"@3:6,c@4:3:[1@5:5,{x@6:5:2@6:8,}@6:5,]@5:3,}@2:4,d@7:1:{b@3:3:"ü"@3:6,c@4:3:[1@5:5,{x@6:5:2@6:8,}@6:5,]@5:3,}@2:4,}@2:1`
	yaml := "# ü\na: &x\n  b: ü\n  c:\n  - 1\n  - x: 2\nd: *x\n"
	if tree, err = yamlpos.ParseYAML("f.yaml", []byte(yaml)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, dump(tree, 0, true)); diff != "" {
		t.Error("YAML", diff)
	}
}

func TestSyntaxErrors(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ name, in, pos, want string }{
		{"f.json", "{\"a\": 1\n \"b\": 2}", "2:2", "expected ',' or '}'"},
		{"f.json", `{"a" 1}`, "1:6", "expected ':'"},
		{"f.json", `{"a": 01}`, "1:7", "leading zero"},
		{"f.json", `{"a": 1x}`, "1:7", "invalid number"},
		{"f.json", `{"a": -}`, "1:7", "invalid number"},
		{"f.json", `{"a": 1.}`, "1:7", "invalid number"},
		{"f.json", `{"a": "x`, "1:7", "not closed"},
		{"f.json", `{"a": "\x41"}`, "1:8", "invalid escape"},
		{"f.json", `{"a": "\ud83d"}`, "1:8", "surrogate"},
		{"f.json", `{"a": NaN}`, "1:7", "expected a value"},
		{"f.json", `{} x`, "1:4", "extraneous characters"},
		{"f.json", ``, "1:1", "unexpected end of file"},
		{"f.json", "\ufeff{}", "1:1", "unexpected character"},
		{"f.json", "{\"a\": \"\xff\"}", "1:7", "UTF-8"},
		{"f.json", `{5: 1}`, "1:2", "a key"},
		{"f.json", deep(yamlpos.MaxDepth + 1), "1:101", "deeper"},
		{"f.yaml", "a: b: c", "1:5", "mapping values are not allowed in this context: a text with ': ' in it needs quotes"},
		{"f.yaml", "a: 1\nb:2\nc: 3", "2:1", "could not find expected ':': a key ends with ': ', a colon and a space"},
		{"f.yaml", "a: 1\nb:\n  c: 1\n\td: 1", "4:1", "found a tab character that violates indentation: only spaces indent"},
		{"f.yaml", "a: {{ .x }}", "1:5", "a text that begins with a brace or a bracket needs quotes"},
		{"f.yaml", "x: 1\na: [b", "2:4", "did not find expected ',' or ']'"},
		{"f.yaml", "c: '*b'\na: *b", "2:4", "unknown anchor"},
		{"f.yaml", "a: @b", "1:4", "cannot start any token"},
		{"f.yaml", "x:\n  a: 1\n   b: 2", "3:5", "mapping values are not allowed in this context: the line above has a value, so that no key can stand below it"},
		{"f.yaml", "x:\n a: 1\nb:\n  c: \"d", "4:6", "end of stream: the quote that opens here is not closed"},
		{"f.yaml", "a:\n- \"b\",\nc: d\n", "2:6", "expected key: nothing may follow a text in quotes"},
		{"f.yaml", "a:\n  b: 'c' d\n  e: f\n", "2:10", "nothing may follow a text in quotes"},
		{"f.yaml", "a:\n- \"b\n  c: \"d/e\"\n  f:\n  - g: h\n", "2:3", "the quote that opens here is closed in line 3, in the midst of something else"},
		{"f.yaml", "a: \"b\n  c\"\nd: e: f\n", "3:5", "a text with ': ' in it needs quotes"},
		{"f.yaml", "x: {b: [1,2}", "1:8", "',' or ']'"},
		{"f.yaml", "x: 1\na: {? [a, b] : c}", "2:7", "a key must be a scalar"},
		{"f.yaml", "a:\n  - b: 1\n    c:\n      d: 1\n     e: 2\n", "5:6", "this line is indented by 5, and the lines above it by 6 (line 4), 4 (line 3), 2 (line 2)"},
		{"f.yaml", "a:\n    b: 1\n  c: 2\nd: 1\n", "3:3", "this line is indented by 2, and the lines above it by 4 (line 2), 0 (line 1)"},
		{"f.yaml", "a:\n  b:\n    c: 1\n  - d: 2\n", "4:3", "an item of a list stands here, and line 2 has a key at this indent"},
		{"f.yaml", "a:\n- b: 1\n- c: 1\n d: 1\n", "4:2", "this line is indented by 1, and the lines above it by 2 (line 3), 0 (line 3)"},
		{"f.yaml", "a:\n  b: \"c\n  d: e\n  f: \"g\"\n", "2:6", "the quote that opens here is closed in line 4, in the midst of something else"},
		{"f.yaml", "a:\n- *\n", "2:3", "'*' begins the name of an anchor; a text that begins so needs quotes"},
		{"f.yaml", "a: &a {b: *a}", "1:11", "contains itself"},
		{"f.yaml", deep(yamlpos.MaxDepth + 1), "1:101", "deeper"},
	} {
		parse := yamlpos.ParseJSON
		if c.name == "f.yaml" {
			parse = yamlpos.ParseYAML
		}
		_, err := parse(c.name, []byte(c.in))
		var syntax *yamlpos.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("%.20q: err = %v", c.in, err)
			continue
		}
		if !strings.HasPrefix(err.Error(), c.name+":"+c.pos+": ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: %v, want %s and %q", c.in, err, c.pos, c.want)
		}
	}
	for _, parse := range []func(string, []byte) (*yamlpos.Tree, error){yamlpos.ParseJSON, yamlpos.ParseYAML} {
		if _, err := parse("f", []byte(deep(yamlpos.MaxDepth))); err != nil {
			t.Errorf("at the limit: %v", err)
		}
	}
}

func TestAliasBomb(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10))
	}
	if _, err := yamlpos.ParseYAML("f.yaml", []byte(b.String())); err == nil || !strings.Contains(err.Error(), "aliases expand to more than") {
		t.Errorf("err = %v", err)
	}
}

func BenchmarkJSON(b *testing.B) {
	one := `{"name": "c00001", "type": "STATIC", "connect_timeout": "5s", "circuit_breakers": {"thresholds": [{"max_connections": 100000, "max_pending_requests": 100000, "max_requests": 100000}]}, "load_assignment": {"cluster_name": "c00001", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 20000}}}}]}]}}`
	src := []byte("[" + strings.Repeat(one+", ", 9999) + one + "]")
	for _, c := range []struct {
		name  string
		parse func(string, []byte) (*yamlpos.Tree, error)
	}{{"json", yamlpos.ParseJSON}, {"yaml", yamlpos.ParseYAML}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.parse("f", src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Keys that stand twice are kept up to a limit, with both places.
func TestRepeated(t *testing.T) {
	for n, want := range map[int]int{1: 0, 2: 1, 101: 100, 102: 100} {
		tree, err := yamlpos.ParseYAML("f", []byte(strings.Repeat("a: 1\n", n)))
		if err != nil {
			t.Fatal(err)
		}
		r := tree.Repeated()
		if len(r) != want {
			t.Errorf("%d times: %d are kept, want %d", n, len(r), want)
		}
		if len(r) > 0 && (r[0].Key != "a" || r[0].Before.String() != "f:1:1" || r[0].Pos.String() != "f:2:1") {
			t.Errorf("%+v", r[0])
		}
	}
}

// What stands behind the first document is not read, and can be told.
func TestSecondDocument(t *testing.T) {
	for text, line := range map[string]int{
		"a: 1\n": 0, "---\na: 1\n": 0, "---\na: 1\n---\n": 0, "a: 1\n---\n# nothing\n": 0, "a: |\n  ---\n": 0, "a: 1\n---a\n": 0,
		"a: 1\n---\n\nb: 1\n": 2, "---\na: 1\n--- {b: 1}\n": 3, "a: 1\n---\n---\nb: 1": 2,
	} {
		tree, err := yamlpos.ParseYAML("f.yaml", []byte(text))
		if err != nil {
			if text != "a: 1\n---a\n" {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if got := tree.Rest().Line; got != line {
			t.Errorf("%q: %d, want %d", text, got, line)
		}
	}
}
