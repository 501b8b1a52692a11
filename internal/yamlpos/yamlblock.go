package yamlpos

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxSearched bounds the text in which the line of a broken block is looked for: each step of the search reads a part of it.
const maxSearched = 1 << 20

// brokenBlock tells whether msg is about the lines of a block, for which the library names only where the block begins.
func brokenBlock(msg string) bool {
	return msg == "did not find expected key" || msg == "did not find expected '-' indicator"
}

// blockError finds the line that does not fit into its block, and says why. first is the line at which the block begins, from 1. ok is
// false if it cannot be told.
func blockError(src []byte, first int, msg string) (line, col int, text string, ok bool) {
	if len(src) > maxSearched {
		return 0, 0, "", false
	}
	starts := lineStarts(src)
	upTo := func(n int) []byte { // the first n lines
		if n >= len(starts) {
			return src
		}
		return src[:starts[n]]
	}
	// Of a text that ends before the line the library has nothing to say, or something else.
	n := first + sort.Search(len(starts)-first, func(i int) bool {
		err := yaml.Unmarshal(upTo(first+i), new(yaml.Node))
		return err != nil && strings.HasSuffix(err.Error(), msg)
	})
	if n > len(starts) {
		return 0, 0, "", false
	}
	l := lineAt(src, starts, n)
	if line, col := openQuote(src, starts, n); line > 0 {
		return line, col, closedIn(n), true
	}
	if at := afterQuotes(l); at > 0 {
		return n, 1 + utf8.RuneCount(l[:at]), "nothing may follow a text in quotes", true
	}
	indent := indentOf(l)
	item := isItem(l[indent:])
	open := openBlocks(src, starts, n)
	for i, b := range open {
		switch {
		case b.indent != indent:
		case item && !b.item:
			return n, indent + 1, fmt.Sprintf("an item of a list stands here, and line %d has a key at this indent", b.line), true
		case !item && b.item && (i+1 == len(open) || open[i+1].indent != indent):
			return n, indent + 1, fmt.Sprintf("a key stands here, and line %d has an item of a list at this indent", b.line), true
		default:
			return n, indent + 1, "this line does not go on with what is above it", true
		}
	}
	var near []string
	for _, b := range open {
		if near = append(near, fmt.Sprintf("%d (line %d)", b.indent, b.line)); len(near) == 3 {
			break
		}
	}
	if len(near) == 0 {
		return n, indent + 1, fmt.Sprintf("this line is indented by %d", indent), true
	}
	return n, indent + 1, fmt.Sprintf("this line is indented by %d, and the lines above it by %s", indent, strings.Join(near, ", ")), true
}

// openQuote looks for the quote that line n closes though it was not meant to: the last line above it that has such quotes has one too
// many. line is 0 if there is none.
func openQuote(src []byte, starts []uint32, n int) (line, col int) {
	for _, q := range []string{`"`, "'"} {
		if !bytes.Contains(lineAt(src, starts, n), []byte(q)) {
			continue
		}
		for l := n - 1; l >= max(1, n-100); l-- {
			text := lineAt(src, starts, l)
			i := bytes.Index(text, []byte(q))
			if i < 0 || bytes.Contains(text[:i], []byte("#")) {
				continue
			}
			if bytes.Count(text, []byte(q))%2 == 1 {
				return l, bytes.LastIndex(text, []byte(q)) + 1
			}
			break
		}
	}
	return 0, 0
}

func closedIn(n int) string {
	return fmt.Sprintf("the quote that opens here is closed in line %d, in the midst of something else", n)
}

// quoteAbove is openQuote for an error that shows some lines below the one, n, that closes the quote. It looks at the last line that
// has quotes.
func quoteAbove(src []byte, starts []uint32, line int) (at, col, n int) {
	for n = min(line, len(starts)); n > max(0, line-10); n-- {
		if text := lineAt(src, starts, n); bytes.ContainsAny(text, `"'`) {
			if at, col = openQuote(src, starts, n); at == 0 {
				return 0, 0, 0
			}
			// A text that was meant to end here has nothing behind it.
			_, rest, _ := bytes.Cut(text, lineAt(src, starts, at)[col-1:col])
			if rest = bytes.TrimLeft(rest, " "); len(rest) == 0 || rest[0] == '#' || rest[0] == ',' {
				return 0, 0, 0
			}
			return at, col, n
		}
	}
	return 0, 0, 0
}

// afterQuotes is where on a line something follows a value in quotes, 0 if nothing does.
func afterQuotes(text []byte) int {
	i := 0
	for i < len(text) && (text[i] == ' ' || isItem(text[i:])) {
		i++
	}
	if j := bytes.Index(text[i:], []byte(": ")); j >= 0 && text[i] != '"' && text[i] != '\'' {
		i += j + 2 + indentOf(text[i+j+2:])
	}
	if i >= len(text) || text[i] != '"' && text[i] != '\'' {
		return 0
	}
	q := text[i]
	for i++; i < len(text) && text[i] != q; i++ {
		if text[i] == '\\' && q == '"' {
			i++
		}
	}
	if i++; i >= len(text) {
		return 0
	}
	i += indentOf(text[i:])
	if i == len(text) || text[i] == ':' || text[i] == '#' || text[i] == q {
		return 0
	}
	return i
}

// openBlock is an indent at which lines may go on.
type openBlock struct {
	indent, line int
	item         bool // a list
}

// openBlocks returns the blocks that are open before line n, the innermost first.
func openBlocks(src []byte, starts []uint32, n int) (list []openBlock) {
	least := 1 << 30
	for l := n - 1; l >= 1 && least > 0; l-- {
		text := lineAt(src, starts, l)
		indent := indentOf(text)
		if rest := text[indent:]; len(rest) == 0 || rest[0] == '#' || indent >= least {
			continue
		}
		var own []openBlock // "- - key: value" opens three
		at := indent
		for isItem(text[at:]) && at < least {
			own = append(own, openBlock{at, l, true})
			at++
			at += indentOf(text[at:])
		}
		if at < len(text) && at < least && text[at] != '#' {
			own = append(own, openBlock{at, l, false})
		}
		for i := len(own) - 1; i >= 0; i-- {
			list = append(list, own[i])
		}
		least = indent
	}
	return list
}

func lineAt(src []byte, starts []uint32, n int) []byte {
	end := uint32(len(src))
	if n < len(starts) {
		end = starts[n]
	}
	return bytes.TrimRight(src[starts[n-1]:end], "\r\n")
}

func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

func isItem(text []byte) bool {
	return len(text) > 0 && text[0] == '-' && (len(text) == 1 || text[1] == ' ')
}
