package match

import (
	"errors"
	"fmt"
	"strings"

	corexdsv3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// Options is what compiling a tree needs to know of where it is used.
type Options[A any] struct {
	// Action compiles an action.
	Action func(name string, a *anypb.Any) (A, error)
	// Connection: the tree is asked for connections, before there is a request: it has no inputs of requests, and some that only
	// connections have.
	Connection bool
	// Input refuses inputs, by the type URL of their configuration; nil: none.
	Input func(url string) error
	// KeepMatching: the place knows what keep_matching is for.
	KeepMatching bool
}

// New compiles a matcher tree. Errors carry Envoy's texts, and the path of what is wrong below the matcher.
func New[A any](m *xdsmatcherv3.Matcher, o Options[A]) (*Tree[A], error) {
	c := compiler[A]{o}
	root, err := c.matcher(m)
	if err != nil {
		return nil, err
	}
	return &Tree[A]{root}, nil
}

type compiler[A any] struct{ Options[A] }

func (c *compiler[A]) matcher(m *xdsmatcherv3.Matcher) (node[A], error) {
	none, err := c.onMatch(m.GetOnNoMatch())
	if err != nil {
		return nil, below("on_no_match", err)
	}
	switch x := m.GetMatcherType().(type) {
	case *xdsmatcherv3.Matcher_MatcherList_:
		n, err := c.list(x.MatcherList, none)
		return n, below("matcher_list", err)
	case *xdsmatcherv3.Matcher_MatcherTree_:
		n, err := c.tree(x.MatcherTree, none)
		return n, below("matcher_tree", err)
	}
	return &emptyNode[A]{none}, nil
}

func (c *compiler[A]) onMatch(m *xdsmatcherv3.Matcher_OnMatch) (on onMatch[A], err error) {
	if m == nil {
		return on, nil
	}
	if m.KeepMatching && !c.KeepMatching {
		return on, errors.New("keep_matching is not supported in this context")
	}
	on.set, on.keep = true, m.KeepMatching
	switch x := m.OnMatch.(type) {
	case *xdsmatcherv3.Matcher_OnMatch_Matcher:
		on.tree, err = c.matcher(x.Matcher)
		return on, below("matcher", err)
	case *xdsmatcherv3.Matcher_OnMatch_Action:
		on.action, err = c.Action(x.Action.GetName(), x.Action.GetTypedConfig())
		return on, below("action", err)
	}
	return on, errors.New("on_match is required")
}

func (c *compiler[A]) list(m *xdsmatcherv3.Matcher_MatcherList, none onMatch[A]) (node[A], error) {
	n := &listNode[A]{none: none}
	for i, x := range m.GetMatchers() {
		p, err := c.predicate(x.GetPredicate())
		if err != nil {
			return nil, below(fmt.Sprintf("matchers[%d].predicate", i), err)
		}
		on, err := c.onMatch(x.GetOnMatch())
		if err != nil {
			return nil, below(fmt.Sprintf("matchers[%d].on_match", i), err)
		}
		n.fields = append(n.fields, field[A]{p, on})
	}
	return n, nil
}

func (c *compiler[A]) predicate(m *xdsmatcherv3.Matcher_MatcherList_Predicate) (predicate, error) {
	switch x := m.GetMatchType().(type) {
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_:
		p, err := c.single(x.SinglePredicate)
		return p, below("single_predicate", err)
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_OrMatcher:
		list, err := c.predicates(x.OrMatcher)
		return or(list), below("or_matcher", err)
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_AndMatcher:
		list, err := c.predicates(x.AndMatcher)
		return and(list), below("and_matcher", err)
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher:
		p, err := c.predicate(x.NotMatcher)
		return not{p}, below("not_matcher", err)
	}
	return nil, errors.New("match_type is required")
}

func (c *compiler[A]) predicates(l *xdsmatcherv3.Matcher_MatcherList_Predicate_PredicateList) ([]predicate, error) {
	var out []predicate
	for i, x := range l.GetPredicate() {
		p, err := c.predicate(x)
		if err != nil {
			return nil, below(fmt.Sprintf("predicate[%d]", i), err)
		}
		out = append(out, p)
	}
	return out, nil
}

func (c *compiler[A]) single(m *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate) (predicate, error) {
	in, err := c.input(m.GetInput())
	if err != nil {
		return nil, below("input", err)
	}
	p := &single{in: in}
	switch x := m.GetMatcher().(type) {
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch:
		s, err := newXDSString(x.ValueMatch)
		if err != nil {
			return nil, below("value_match", err)
		}
		if err := in.gives(texts); err != nil {
			return nil, err
		}
		p.test = func(_ *Data, v Value) bool { return v.Has && s.Match(v.String()) }
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch:
		var k kind
		if p.test, k, err = custom(x.CustomMatch); err != nil {
			return nil, below("custom_match", err)
		}
		if err := in.gives(k); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("matcher is required")
	}
	return p, nil
}

// kindNames are Envoy's names for what inputs give.
var kindNames = [...]string{"string", "dynamic_metadata"}

// gives checks that an input gives what a matcher takes.
func (in *input) gives(k kind) error {
	if in.kind == k {
		return nil
	}
	return fmt.Errorf("Unsupported data input type: %s, currently supported type: %s", kindNames[in.kind], kindNames[k]) //nolint:staticcheck // Envoy's text
}

// tree compiles a matcher that looks its input up.
func (c *compiler[A]) tree(m *xdsmatcherv3.Matcher_MatcherTree, none onMatch[A]) (node[A], error) {
	in, err := c.input(m.GetInput())
	if err != nil {
		return nil, below("input", err)
	}
	n := &mapNode[A]{in: in, none: none}
	if err := in.gives(texts); err != nil {
		return nil, err
	}
	switch x := m.GetTreeType().(type) {
	case *xdsmatcherv3.Matcher_MatcherTree_ExactMatchMap:
		return n, below("exact_match_map", c.exactMap(n, x.ExactMatchMap.GetMap()))
	case *xdsmatcherv3.Matcher_MatcherTree_PrefixMatchMap:
		return n, below("prefix_match_map", c.prefixMap(n, x.PrefixMatchMap.GetMap()))
	case *xdsmatcherv3.Matcher_MatcherTree_CustomMatch:
		return n, below("custom_match", c.customMap(n, x.CustomMatch))
	}
	return nil, errors.New("tree_type is required")
}

func (c *compiler[A]) exactMap(n *mapNode[A], m map[string]*xdsmatcherv3.Matcher_OnMatch) error {
	all := make(map[string]*onMatch[A], len(m))
	for _, k := range sortedKeys(m) {
		on, err := c.onMatch(m[k])
		if err != nil {
			return below(fmt.Sprintf("map[%s]", k), err)
		}
		all[k] = &on
		n.all = append(n.all, &on)
	}
	n.find = func(d *Data, v Value) (a A, o Outcome) {
		if on := all[v.String()]; on != nil {
			return on.resolve(d)
		}
		return a, NoMatch
	}
	return nil
}

// maxPrefixes bounds how many prefixes of one text a prefix_match_map can have; all of them may be tried.
const maxPrefixes = 64

func (c *compiler[A]) prefixMap(n *mapNode[A], m map[string]*xdsmatcherv3.Matcher_OnMatch) error {
	var b TrieBuilder[*onMatch[A]]
	for _, k := range sortedKeys(m) {
		on, err := c.onMatch(m[k])
		if err != nil {
			return below(fmt.Sprintf("map[%s]", k), err)
		}
		b.Set(k, &on)
		n.all = append(n.all, &on)
	}
	trie := b.Build()
	if nested(b.Keys()) > maxPrefixes {
		return fmt.Errorf("more than %d keys begin with one another", maxPrefixes)
	}
	n.find = func(d *Data, v Value) (a A, o Outcome) {
		if trie == nil {
			return a, NoMatch
		}
		var found [maxPrefixes]*onMatch[A]
		k := 0
		for w := trie.Walk(v.String()); w.Next(); k++ {
			found[k] = w.Value()
		}
		// The longest first; what leads nowhere leaves the word to a shorter one.
		for k--; k >= 0; k-- {
			if a, o = found[k].resolve(d); o != NoMatch {
				return a, o
			}
		}
		return a, NoMatch
	}
	return nil
}

// nested is the greatest number of keys that begin with one another.
func nested(keys []string) (most int) {
	var open []string
	for _, k := range keys {
		for len(open) > 0 && !strings.HasPrefix(k, open[len(open)-1]) {
			open = open[:len(open)-1]
		}
		open = append(open, k)
		most = max(most, len(open))
	}
	return most
}

// below puts a path before an error of a part.
func below(path string, err error) error {
	if err == nil {
		return nil
	}
	return config.At(path, err)
}

func unpack(x *corexdsv3.TypedExtensionConfig) (any, error) {
	m, _, err := config.Unpack(x.GetTypedConfig(), nil)
	return m, err
}
