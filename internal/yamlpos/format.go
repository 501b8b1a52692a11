package yamlpos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// blank stands for an empty line while a text is formatted.
const blank = "#\uE0FF"

// FormatYAML returns a document with an indent of two spaces and lists that begin under their key. Comments, anchors, the order of keys
// and how scalars are quoted stay, as do empty lines (one of several); a flow map or list over several lines becomes blocks. What
// comes out is read as the same, and has the same comments: otherwise there is an error.
func FormatYAML(file string, src []byte) ([]byte, error) {
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	before, err := ParseYAML(file, src)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(src))
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &SyntaxError{Pos: Pos{File: file, Line: 1, Col: 1}, Msg: "the file is empty"}
		}
		return nil, yamlError(file, src, err)
	}
	var second yaml.Node
	if err := dec.Decode(&second); err == nil {
		return nil, &SyntaxError{Pos: Pos{File: file, Line: second.Line, Col: second.Column},
			Msg: "the file has a second document, which is not read: make it a file of its own"}
	}
	want := comments(&doc, nil)
	for _, try := range []struct{ marked, folded bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		text := src
		if try.marked {
			text = markBlanks(src, &doc)
		}
		out, err := reformat(text, try.folded)
		if err != nil {
			continue
		}
		if after, err := ParseYAML(file, out); err == nil && before.same(0, after, 0) && slices.Equal(want, commentsOf(out)) {
			return out, nil
		}
	}
	return nil, &SyntaxError{Pos: Pos{File: file, Line: 1, Col: 1}, Msg: "cannot be formatted without changing what it says or losing a comment; it stays as it is"}
}

// reformat writes a document anew. Without folded, folded blocks become literal ones: the encoder breaks some of them.
func reformat(src []byte, folded bool) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, err
	}
	block(&doc)
	if !folded {
		unfold(&doc)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	e.CompactSeqIndent()
	if err := e.Encode(&doc); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return unmarkBlanks(b.String()), nil
}

// block makes blocks of the flow collections that stand over several lines; it returns the last line of n.
func block(n *yaml.Node) int {
	last := n.Line
	if n.Tag == "!!merge" {
		n.Tag = "" // the encoder would spell it out
	}
	for _, c := range n.Content {
		last = max(last, block(c))
	}
	if last > n.Line && n.Style&yaml.FlowStyle != 0 {
		n.Style &^= yaml.FlowStyle
	}
	return last
}

func unfold(n *yaml.Node) {
	if n.Style&yaml.FoldedStyle != 0 {
		n.Style = n.Style&^yaml.FoldedStyle | yaml.LiteralStyle
	}
	for _, c := range n.Content {
		unfold(c)
	}
}

// markBlanks puts a comment into each empty line that is not part of a scalar, as deep as the line after it.
func markBlanks(src []byte, doc *yaml.Node) []byte {
	lines := strings.Split(string(src), "\n")
	inside := make([]bool, len(lines)+2)
	var nodes []*yaml.Node
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		nodes = append(nodes, n)
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(doc)
	for i, n := range nodes {
		if n.Line < 1 || n.Line > len(lines) { // an empty value behind the last line
			continue
		}
		if n.Kind != yaml.ScalarNode || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 && strings.Contains(lines[n.Line-1], n.Value) {
			continue // it stands in one line
		}
		end := len(lines)
		if i+1 < len(nodes) {
			end = min(nodes[i+1].Line-1, end)
		}
		for l := n.Line; l <= end; l++ {
			inside[l] = true
		}
	}
	depth := ""
	for i := len(lines) - 1; i >= 0; i-- {
		if t := strings.TrimLeft(lines[i], " "); t != "" {
			depth = lines[i][:len(lines[i])-len(t)]
		} else if i+1 < len(lines) && !inside[i+1] {
			lines[i] = depth + blank
		}
	}
	return []byte(strings.Join(lines, "\n"))
}

// unmarkBlanks turns the marks into empty lines, one for several, none at the ends.
func unmarkBlanks(s string) []byte {
	var out []string
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if strings.TrimSpace(line) == blank {
			line = ""
		}
		if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, line)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

// commentsOf returns the lines of all comments of a document, sorted.
func commentsOf(src []byte) []string {
	var doc yaml.Node
	if yaml.Unmarshal(src, &doc) != nil {
		return nil
	}
	return comments(&doc, nil)
}

func comments(n *yaml.Node, list []string) []string {
	for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		for line := range strings.Lines(c) {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, line)
			}
		}
	}
	for _, c := range n.Content {
		list = comments(c, list)
	}
	if n.Kind == yaml.DocumentNode {
		slices.Sort(list)
	}
	return list
}

// same compares two subtrees.
func (t *Tree) same(a Node, o *Tree, b Node) bool {
	if t.Kind(a) != o.Kind(b) || !bytes.Equal(t.Key(a), o.Key(b)) || !bytes.Equal(t.Text(a), o.Text(b)) || t.Bool(a) != o.Bool(b) {
		return false
	}
	if t.Quoted(a) != o.Quoted(b) { // that matters for what could be a number
		if _, err := strconv.ParseFloat(string(t.Text(a)), 64); err == nil {
			return false
		}
	}
	if k := t.Kind(a); k != Map && k != Seq {
		return true
	}
	if t.Len(a) != o.Len(b) {
		return false
	}
	d := o.First(b)
	for c := t.First(a); c < t.End(a); c, d = t.End(c), o.End(d) {
		if !t.same(c, o, d) {
			return false
		}
	}
	return true
}
