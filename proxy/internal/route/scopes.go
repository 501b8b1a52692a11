package route

import (
	"fmt"
	"strings"
	"sync/atomic"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// Scopes chooses the route configuration of a request by a key that its headers make (scoped_routes). The choice is a snapshot that the
// main loop replaces.
type Scopes struct {
	Name      string
	fragments []keyFragment
	slots     atomic.Pointer[map[string]*Slot]
}

// keyFragment makes one part of a key from a header.
type keyFragment struct {
	name      string
	id        http.ID
	separator string
	index     int
	// element: the part is the value of a key within the header, key and value being apart by kv.
	element bool
	key, kv string
}

// maxScopeKey is how long a key may be before memory is taken for it.
const maxScopeKey = 256

// Table returns the table for a request, nil if there is none for its key.
func (s *Scopes) Table(h *http.HeaderMap) *Table {
	slots := s.slots.Load()
	if slots == nil {
		return nil
	}
	var scratch [maxScopeKey]byte
	key := scratch[:0]
	for i := range s.fragments {
		v, ok := s.fragments[i].value(h)
		if !ok {
			return nil
		}
		key = appendFragment(key, v)
	}
	if slot := (*slots)[string(key)]; slot != nil {
		return slot.Load()
	}
	return nil
}

// appendFragment adds a part to a key. Its length keeps parts apart.
func appendFragment(key []byte, v string) []byte {
	n := len(v)
	key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	return append(key, v...)
}

// value finds the part in the first header of its name.
func (f *keyFragment) value(h *http.HeaderMap) (string, bool) {
	v, ok := "", false
	if f.id != http.None {
		v, ok = h.Get(f.id), h.Has(f.id)
	} else {
		v, ok = h.GetName(f.name)
	}
	if !ok {
		return "", false
	}
	for i := 0; ; i++ {
		one, rest, more := v, "", false
		if f.separator != "" {
			one, rest, more = strings.Cut(v, f.separator)
		}
		if f.element {
			if k, val, _ := strings.Cut(one, f.kv); k == f.key {
				return val, true
			}
		} else if i == f.index {
			return one, true
		}
		if !more {
			return "", false
		}
		v = rest
	}
}

// Set replaces the choice. owner: main loop.
func (s *Scopes) Set(slots map[string]*Slot) { s.slots.Store(&slots) }

// NewScopes compiles the part of scoped_routes that makes keys.
func NewScopes(b *hcmv3.ScopedRoutes_ScopeKeyBuilder) (*Scopes, error) {
	s := &Scopes{}
	for i, x := range b.GetFragments() {
		e := x.GetHeaderValueExtractor()
		f := keyFragment{name: strings.ToLower(e.GetName()), separator: e.GetElementSeparator()}
		if f.name == "host" {
			f.name = ":authority"
		}
		f.id = http.Lookup(f.name)
		bad := func(why string) error {
			return config.At(fmt.Sprintf("scope_key_builder.fragments[%d].header_value_extractor", i),
				fmt.Errorf("Proto constraint validation failed (%s)", why)) //nolint:staticcheck // Envoy's text
		}
		switch t := e.GetExtractType().(type) {
		case *hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_Index:
			f.index = int(t.Index)
			if f.separator == "" && f.index > 0 {
				return nil, bad("Index > 0 for empty string element separator.")
			}
		case *hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_Element:
			f.element, f.key, f.kv = true, t.Element.GetKey(), t.Element.GetSeparator()
		default:
			return nil, bad("HeaderValueExtractor extract_type not set.")
		}
		s.fragments = append(s.fragments, f)
	}
	return s, nil
}

// ScopeKey is the key of a scope.
func ScopeKey(k *routev3.ScopedRouteConfiguration_Key) string {
	var key []byte
	for _, f := range k.GetFragments() {
		key = appendFragment(key, f.GetStringKey())
	}
	return string(key)
}
