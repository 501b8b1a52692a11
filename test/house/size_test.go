package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The measures of the house. A file aims at 300 lines; what must stop at 600 wants to be two files.
const (
	fileLimitLines = 600
	funcLimitLines = 70
)

// tables are files that hold data and little else: long because the data is.
var tables = regexp.MustCompile(`(^|/|_)tables?\.go$|\.pb\.go$`)

func TestFileSizes(t *testing.T) {
	for _, file := range sized(t) {
		if n := strings.Count(read(t, file), "\n"); n > fileLimitLines {
			t.Errorf("%s has %d lines, over %d: split it along what it does (tables belong in a file called table.go)", file, n, fileLimitLines)
		}
	}
}

// TestFunctionLengths compares the functions that are too long with a list of those that may be. The list is of old sins:
// it may shrink in any commit, and grows only with a reason.
func TestFunctionLengths(t *testing.T) {
	var long []string
	for _, file := range sized(t) {
		long = append(long, longFunctions(t, file, read(t, file))...)
	}
	slices.Sort(long)
	compareList(t, "test/house/testdata/long_functions.txt", "# Functions of more than 70 lines. This list only shrinks.\n", long)
}

func TestSizeRulesCanFail(t *testing.T) {
	body := strings.Repeat("\tprintln()\n", funcLimitLines-2)
	source := "package a\n\nfunc fits() {\n" + body + "}\n\nfunc (t *T) tooLong() {\n\tprintln()\n" + body + "}\n"
	got := longFunctions(t, "a/a.go", source)
	if !slices.Equal(got, []string{"a/a.go T.tooLong"}) {
		t.Errorf("got %q", got)
	}
	for file, want := range map[string]bool{
		"proxy/internal/codec/h2/hpack_table.go": true, "a/tables.go": true, "a/table.go": true, "a/x.pb.go": true,
		"a/stable.go": false, "a/table_test.go": false,
	} {
		if tables.MatchString(file) != want {
			t.Errorf("%s is a table: want %v", file, want)
		}
	}
}

// sized returns the files that the measures hold for.
func sized(t *testing.T) []string {
	return files(t, func(rel string) bool {
		// The chain of a request names route/table.go, which is code.
		isTable := tables.MatchString(rel) && rel != "proxy/internal/route/table.go"
		return isGo(rel) && !isTest(rel) && !isTable && !isGenerated(t, rel)
	})
}

func isGenerated(t *testing.T, rel string) bool {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, rel), nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return ast.IsGenerated(f)
}

// longFunctions returns "file Type.method" for each function over the limit, its signature and closing brace included.
func longFunctions(t *testing.T, rel, source string) []string {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, rel, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var long []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > funcLimitLines {
			long = append(long, fmt.Sprintf("%s %s", rel, funcName(fn)))
		}
	}
	return long
}

func funcName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
