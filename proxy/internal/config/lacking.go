package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// OfEnvoy tells whether a message type configures an extension of Envoy's own build: it may be one that this build does not have.
func OfEnvoy(message string) bool {
	return knownToEnvoy(message) && !slices.Contains(resourcePackages, packageOf(message))
}

// resourcePackages hold what configurations are made of. Some of it stands in an Any, and configures no extension.
var resourcePackages = []string{"envoy.config.core.v3", "envoy.config.cluster.v3", "envoy.config.endpoint.v3", "envoy.config.listener.v3",
	"envoy.config.route.v3"}

// mostWithin bounds how many extensions one problem names.
const mostWithin = 20

// Lacking names in each problem about what is not supported all the extensions that stand there and that this build does not have:
// what is refused as a whole is not looked into, and who wants to know what is missing wants all of it. has tells whether a message's
// extension is there. Only sources with a tree tell.
func (e *Errors) Lacking(p *Positions, has func(message string) bool) {
	for _, x := range e.List {
		if x.Classify(); x.Kind != Unsupported {
			continue
		}
		n, ok := p.node(x.Path)
		if !ok {
			continue
		}
		l := lackOf{has: has, found: []string{x.Extension}}
		l.look(n)
		x.Within = strings.Join(l.found[1:], ", ")
		if x.Extension == "" {
			x.Msg += unregistered(n)
		}
	}
}

// unregistered names, in Envoy's words, the extensions of a list or value of extensions that have no configuration, or one of no extension
// of Envoy's: who has them made a mistake besides.
func unregistered(n treeNode) (text string) {
	n = n.read()
	one := func(s treeNode) {
		s = s.read()
		t := s.tree
		if t.Kind(s.node) != yamlpos.Map {
			return
		}
		name, typ := "", ""
		for c := t.First(s.node); c < t.End(s.node); c = t.End(c) {
			switch key := string(t.Key(c)); {
			case key == "name" && t.Kind(c) == yamlpos.String:
				name = string(t.Text(c))
			case sameField([]byte(key), "typed_config"):
				typ = typeAt(t, treeNode{t, c}.read().node)
			case !slices.Contains(besideConfig, key):
				return // this is no extension
			}
		}
		if name != "" && !OfEnvoy(typ) {
			text += "; Didn't find a registered implementation for '" + shorten(name) + "' with type URL: '" + shorten(typ) + "'"
		}
	}
	if n.tree.Kind(n.node) != yamlpos.Seq {
		one(n)
		return text
	}
	for i, c := 0, n.tree.First(n.node); c < n.tree.End(n.node) && i < mostWithin; i, c = i+1, n.tree.End(c) {
		one(treeNode{n.tree, c})
	}
	return text
}

// besideConfig are the fields that messages which name an extension have besides.
var besideConfig = []string{"config", "category", "is_optional", "isOptional", "disabled", "event"}

// lackOf collects the types of a value, the outermost first.
type lackOf struct {
	has   func(string) bool
	found []string
}

func (l *lackOf) look(s treeNode) {
	s = s.read()
	t := s.tree
	if k := t.Kind(s.node); k != yamlpos.Map && k != yamlpos.Seq {
		return
	}
	if name := typeAt(t, s.node); name != "" && OfEnvoy(name) && !l.has(name) && !slices.Contains(l.found, name) && len(l.found) <= mostWithin {
		l.found = append(l.found, name)
	}
	for c := t.First(s.node); c < t.End(s.node); c = t.End(c) {
		l.look(treeNode{t, c})
	}
}

// typeAt is the message that a map says it is, for a TypedStruct the one inside; "" if it does not say.
func typeAt(t *yamlpos.Tree, n yamlpos.Node) string {
	text := func(key string) string {
		if c, ok := t.Child(n, key); ok && t.Kind(c) == yamlpos.String {
			return typeName(string(t.Text(c)))
		}
		return ""
	}
	if t.Kind(n) != yamlpos.Map {
		return ""
	}
	name := text("@type")
	if isTypedStruct(name) {
		return cmp.Or(text("type_url"), text("typeUrl"))
	}
	return name
}
