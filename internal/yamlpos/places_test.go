package yamlpos_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// Places in one long line are asked for in any order.
func TestPlacesBackAndForth(t *testing.T) {
	const values = 60
	var b strings.Builder
	b.WriteString("{\n")
	want := make([]int, values)
	line := 0
	for i := range values {
		s := fmt.Sprintf(`"k%d": `, i)
		want[i] = line + utf8.RuneCountInString(s) + 1
		s += `"é` + strings.Repeat("ü", i%3) + `", `
		line += utf8.RuneCountInString(s)
		b.WriteString(s)
	}
	b.WriteString(`"last": 1}`)
	tree, err := yamlpos.ParseJSON("f.json", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(i int) {
		t.Helper()
		n, ok := tree.Child(tree.Root(), fmt.Sprintf("k%d", i))
		if p := tree.Pos(n); !ok || p.Line != 2 || p.Col != want[i] {
			t.Errorf("k%d is at %v, want 2:%d", i, p, want[i])
		}
	}
	for i := range values {
		ask(i)
	}
	for i := range values {
		ask(values - 1 - i)
		ask(i)
		ask(i * 7 % values)
	}
}
