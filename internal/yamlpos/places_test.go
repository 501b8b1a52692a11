package yamlpos_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// TestManyPlaces asks for more places than are counted without an index, forwards and backwards, in lines with characters of several
// bytes.
func TestManyPlaces(t *testing.T) {
	var b strings.Builder
	b.WriteString("[\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  \"é\", %d,\n", i)
	}
	b.WriteString("0]")
	tree, err := yamlpos.ParseJSON("f", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	look := func(i int) {
		for j, col := range []int{3, 8} {
			n, ok := tree.Elem(tree.Root(), 2*i+j)
			if want := (yamlpos.Pos{File: "f", Line: i + 2, Col: col}); !ok || tree.Pos(n) != want {
				t.Errorf("element %d: %v, want %v", 2*i+j, tree.Pos(n), want)
			}
		}
	}
	for i := range 100 {
		look(i)
	}
	for i := range 100 {
		look(99 - i)
	}
}
