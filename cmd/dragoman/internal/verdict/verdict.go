// Package verdict says of configuration files whether they run here: what is wrong with them, which of the extensions that they use
// there are, and where Dragoman is known to behave differently from Envoy for what they configure.
//
// It puts together what proxy.Check finds, what the file names, and the page of known differences. It runs on the caller's goroutine
// and one of its own for the time of a call, starts no proxy, and writes nothing.
package verdict

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/contrib"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/configfile/doubt"
)

// All is the result for several files.
type All struct {
	OK      bool     `json:"ok"`
	Files   []*File  `json:"files"`
	Skipped []string `json:"skipped,omitempty"` // files of folders that hold no bootstrap
}

// File is the result for one file.
type File struct {
	File string `json:"file"`
	OK   bool   `json:"ok"`
	// Verdict is "runs", "unsupported" (this build lacks something, and what is wrong besides may follow from that), "machine" (it
	// names files or variables that are not here) or "refused" (Envoy refuses it anywhere).
	Verdict    string            `json:"verdict"`
	Problems   []proxy.Problem   `json:"problems"`
	More       int               `json:"more,omitempty"` // problems beyond the limit
	Notes      []proxy.Problem   `json:"notes,omitempty"`
	Extensions []Extension       `json:"extensions,omitempty"`
	Differs    []Difference      `json:"differs,omitempty"`
	Has        map[string]int    `json:"has,omitempty"` // listeners, clusters, virtual hosts, routes
	root       *configfile.Value // nil if it could not be read
	fields     map[string]bool   // those that are not supported
	lacking    map[string]bool   // resources that need what is not supported
	pure       bool              // all problems are of what is not supported
	elsewhere  int               // problems of what other builds of Envoy have

	isResources bool // it is a DiscoveryResponse, as xDS brings them
}

// Extension is a message that an @type names.
type Extension struct {
	Type      string `json:"type"`
	Supported bool   `json:"supported"`
	Places    int    `json:"places"` // how often the file has it
	// Build is where it is instead, if Envoy's own build has it neither: "contrib", or "other" for a fork's; empty mostly.
	Build string `json:"build,omitempty"`
}

// Path is a file to look at.
type Path struct {
	Path  string
	Found bool // in a folder: it may be something else
}

// Files finds the files that arguments name, "-" is standard input; those of a folder are the ones whose names say that they may be configurations.
func Files(args []string) (list []Path, err error) {
	for _, a := range args {
		if a == "-" {
			list = append(list, Path{Path: a})
			continue
		}
		st, err := os.Stat(a)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			list = append(list, Path{Path: a})
			continue
		}
		err = filepath.WalkDir(a, func(p string, d fs.DirEntry, err error) error {
			switch name := d.Name(); {
			case err != nil:
				return err
			case d.IsDir() && p != a && strings.HasPrefix(name, "."):
				return filepath.SkipDir
			case !d.IsDir() && slices.Contains(endings, strings.ToLower(filepath.Ext(name))):
				list = append(list, Path{p, true})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

var endings = []string{".yaml", ".yml", ".json", ".pb", ".pb_text"}

// Of looks at one file, or at read.Stdin for "-". It is parsed twice, at the same time: to be built, and to see what it names.
func Of(path string, o proxy.LoadOptions, read configfile.Options, opts ...proxy.Option) *File {
	if path == "-" {
		path = configfile.StandardInput
		o.Data, _ = io.ReadAll(read.Stdin)
	} else {
		o.Data, _ = os.ReadFile(path) // once: it may be a pipe. Check says what is wrong with one that cannot be read.
	}
	f := &File{File: path}
	var file *configfile.File
	done := make(chan struct{})
	go func() {
		defer close(done)
		read.AllowUnknownFields = true
		var err error
		if file, err = configfile.Of(path, o.Data, read); err == nil {
			f.root = configfile.ProtoNames(file)
		}
	}()
	r := proxy.Check(path, o, opts...)
	has, err := proxy.Has(opts...)
	if err != nil { // two extensions claim one message: Check has told
		has = func(string) bool { return true }
	}
	<-done
	f.reported(r, o, opts)
	missing := map[string]bool{}
	var fields []string
	lacking := map[string]bool{} // resources that need what is not there
	for i := range f.Problems {
		p := &f.Problems[i]
		if p.Kind == proxy.UnknownType {
			f.nowhere(p, missing)
		}
		if !unsupported(p) {
			continue
		}
		lacking[resource(p.Path)] = true
		if p.Extension != "" {
			missing[p.Extension] = true
		} else {
			fields = append(fields, p.Path)
		}
		for t := range strings.SplitSeq(p.Within, ", ") {
			if t != "" {
				missing[t] = true
			}
		}
	}
	f.missingFields(fields)
	f.lacking = lacking
	f.judge()
	f.advise(o)
	if f.root != nil {
		f.extensions(missing, has)
		f.count()
		f.Differs = differences(f.root)
		if f.Verdict != "refused" && !f.isResources { // what is doubtful there may follow from the mistake
			f.Notes = append(f.Notes, doubt.Of(file, f.root, cmp.Or(o.MaxProblems, mostDoubts))...)
		}
	}
	return f
}

// mostDoubts is how many doubts of a file are told.
const mostDoubts = 100

// judge says what the problems mean together. What is wrong with a resource that needs something which is not there may follow from
// that, unless it is a mistake in the text itself.
func (f *File) judge() {
	f.Verdict, f.pure = "runs", true
	for i := range f.Problems {
		switch p := &f.Problems[i]; {
		case unsupported(p):
			f.Verdict = "unsupported"
		case p.Kind == proxy.NotHere:
			f.pure = false
			if f.Verdict == "runs" {
				f.Verdict = "machine"
			}
		case p.Kind != proxy.Invalid && p.Kind != proxy.UnknownType || !f.lacking[resource(p.Path)]:
			f.Verdict = "refused"
			return
		default:
			f.pure = false
			f.Verdict = "unsupported"
		}
	}
}

// advise notes what the problems have in common.
func (f *File) advise(o proxy.LoadOptions) {
	if o.Env == nil && slices.ContainsFunc(f.Problems, func(p proxy.Problem) bool {
		return variable.MatchString(p.Msg+" "+p.Found) || p.Kind == proxy.Unreadable && variable.Match(o.Data) // {port: ${PORT}} is no YAML
	}) {
		f.Notes = append(f.Notes, proxy.Problem{File: f.File, Kind: proxy.Invalid, Msg: "variables such as ${NAME} are replaced with --config-env only"})
	}
	if f.root.Get("kind") != nil && f.root.Get("apiVersion") != nil {
		f.Notes = append(f.Notes, proxy.Problem{File: f.File, Kind: proxy.Invalid,
			Msg: "this is an object of Kubernetes: a bootstrap would be a value in it (kubectl get ... -o jsonpath=...)"})
	}
}

var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*`)

// Elsewhere judges anew for another machine: what this one lacks becomes notes. Where a variable is not set nobody knows what the file says:
// that has no field, and stays.
func (f *File) Elsewhere() {
	var here []proxy.Problem
	f.Problems = slices.DeleteFunc(f.Problems, func(p proxy.Problem) bool {
		gone := p.Kind == proxy.NotHere && p.Path != ""
		if gone {
			here = append(here, p)
		}
		return gone
	})
	f.Notes = append(f.Notes, here...)
	f.OK = len(f.Problems) == 0 && f.More == 0
	f.judge()
}

// resource is the part of a path that names a resource: static_resources.listeners[3].
func resource(path string) string {
	if i := strings.IndexByte(path, ']'); i >= 0 {
		return path[:i+1]
	}
	return path
}

// unsupported tells whether Envoy would take what p is about. Regular expressions of stats tags are ECMAScript there, and RE2 here.
func unsupported(p *proxy.Problem) bool {
	return p.Kind == proxy.Unsupported || strings.HasPrefix(p.Path, "stats_config.stats_tags[") && strings.Contains(p.Msg, "unsupported Perl syntax")
}

// nowhere adds a type that nobody knows to those that are missing, and tells whether it is one of another build of Envoy.
func (f *File) nowhere(p *proxy.Problem, missing map[string]bool) {
	t := typeOf(f.at(p.Path))
	if t == "" {
		return
	}
	missing[t] = true
	if buildOf(t) != "" {
		f.elsewhere++
	}
}

// buildOf is the build of Envoy that has a message which neither this build nor Envoy's own has: "contrib", "other", or "" if there
// is none that is known.
func buildOf(message string) string {
	switch {
	case contrib.Has(message):
		return "contrib"
	case contrib.Foreign(message):
		return "other"
	}
	return ""
}

// at is the value at a path of a problem, nil if there is none.
func (f *File) at(path string) *configfile.Value {
	v := f.root
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		if i, err := strconv.Atoi(step); err == nil && v != nil && v.Kind == configfile.List && i < len(v.Items) {
			v = v.Items[i]
		} else {
			v = v.Get(strings.Trim(step, `"`))
		}
	}
	return v
}

// typeOf is the message that v, a map of a file, says it is: for a TypedStruct the one inside. "": it does not say.
func typeOf(v *configfile.Value) string {
	url := v.Str("@type")
	if strings.HasSuffix(url, ".TypedStruct") {
		url = cmp.Or(v.Str("type_url"), v.Str("typeUrl"), url)
	}
	return url[strings.LastIndexByte(url, '/')+1:]
}

// Bootstrap tells whether the file holds what can be one: a map with one of its fields. Of one that cannot be read, nobody knows.
func (f *File) Bootstrap() bool {
	if f.root == nil {
		return true
	}
	for _, k := range []string{"static_resources", "dynamic_resources", "admin", "node"} {
		if f.root.Get(k) != nil {
			return f.root.Get("kind") == nil || f.root.Get("apiVersion") == nil // a manifest of Kubernetes
		}
	}
	return false
}

// Says is the result in a sentence.
func (f *File) Says() string {
	n := len(f.Problems) + f.More
	problems := fmt.Sprintf("%d problems", n)
	if n == 1 {
		problems = "1 problem"
	}
	switch f.Verdict {
	case "runs":
		if f.isResources {
			return "holds resources of xDS, no bootstrap; nothing is wrong with them (clusters and secrets that they name may be elsewhere)"
		}
		return "runs as it is"
	case "unsupported":
		if f.pure {
			return "does not run yet: " + problems + ", all about what is not supported here"
		}
		return "does not run yet: " + problems + ", some of which may follow from what is not supported"
	}
	if f.Verdict == "machine" {
		return "does not run on this machine: " + problems + ", all of them files, folders or variables that are not here (--allow-missing-files)"
	}
	if f.elsewhere == n {
		return "is refused: " + problems + ", all of extensions that Envoy 1.40's own build does not have either"
	}
	return "is refused: " + problems
}

// Counts is what the file has, "" if nothing is known.
func (f *File) Counts() string {
	var list []string
	for _, k := range counted {
		if n := f.Has[k]; n > 0 {
			if n == 1 {
				k = strings.TrimSuffix(k, "s")
			}
			list = append(list, fmt.Sprintf("%d %s", n, k))
		}
	}
	return strings.Join(list, ", ")
}

var counted = []string{"listeners", "virtual hosts", "routes", "clusters", "secrets"}

func (f *File) count() {
	f.Has = map[string]int{}
	static := f.root.Get("static_resources")
	for _, k := range []string{"listeners", "clusters", "secrets"} {
		f.Has[k] = len(static.List(k))
	}
	walk(f.root, func(v *configfile.Value) {
		for _, h := range v.List("virtual_hosts") {
			f.Has["virtual hosts"]++
			f.Has["routes"] += len(h.List("routes"))
		}
	})
}

// extensions lists the messages that the file names, those that are missing first.
func (f *File) extensions(missing map[string]bool, has func(message string) bool) {
	used := map[string]int{}
	walk(f.root, func(v *configfile.Value) {
		if t := typeOf(v); t != "" {
			used[t]++
		}
	})
	for t := range missing {
		used[t] += 0
	}
	for _, t := range slices.Sorted(maps.Keys(used)) {
		x := Extension{Type: t, Supported: !missing[t] && has(t), Places: max(used[t], 1)}
		if !x.Supported {
			x.Build = buildOf(t)
		}
		f.Extensions = append(f.Extensions, x)
	}
	slices.SortStableFunc(f.Extensions, func(a, b Extension) int {
		switch {
		case a.Supported == b.Supported:
			return 0
		case b.Supported:
			return -1
		}
		return 1
	})
}

// Lack is what some of the files need and this build has not: an extension, or a field.
type Lack struct {
	Extension string `json:"extension,omitempty"` // the message type
	Field     string `json:"field,omitempty"`     // the path without indices, such as clusters[].health_checks
	Files     int    `json:"files"`               // how many of them
}

// Missing is what some of the files lack, the most wanted first.
func (a *All) Missing() (list []Lack) {
	files := map[Lack]int{}
	for _, f := range a.Files {
		for _, x := range f.Extensions {
			if !x.Supported {
				files[Lack{Extension: x.Type}]++
			}
		}
		for field := range f.fields {
			files[Lack{Field: field}]++
		}
	}
	for k, n := range files {
		k.Files = n
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b Lack) int {
		return cmp.Or(b.Files-a.Files, cmp.Compare(a.Extension, b.Extension), cmp.Compare(a.Field, b.Field))
	})
	return list
}

// missingFields keeps the fields that are not supported without what tells their places apart, so that files can be put together.
func (f *File) missingFields(paths []string) {
	f.fields = map[string]bool{}
	for _, p := range paths {
		f.fields[index.ReplaceAllString(strings.TrimPrefix(p, "static_resources."), "[]")] = true
	}
}

// index is that of a list or a map in a path.
var index = regexp.MustCompile(`\[([0-9]+|"[^"]*")\]`)

// walk calls do for all maps.
func walk(v *configfile.Value, do func(*configfile.Value)) {
	if v == nil {
		return
	}
	if v.Kind == configfile.Map {
		do(v)
	}
	for _, x := range v.Items {
		walk(x, do)
	}
}
