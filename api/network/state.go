package network

import "sort"

// Metadata is a stream's dynamic metadata: per filter namespace a tree of plain values (nil, bool, float64, string, []any,
// map[string]any), as google.protobuf.Struct has them.
type Metadata struct{ spaces map[string]map[string]any }

// Set puts a value under a namespace, replacing what was there.
func (m *Metadata) Set(namespace, key string, value any) {
	if m.spaces == nil {
		m.spaces = map[string]map[string]any{}
	}
	s := m.spaces[namespace]
	if s == nil {
		s = map[string]any{}
		m.spaces[namespace] = s
	}
	s[key] = value
}

// Get follows path below a namespace. ok is false if something on the way is missing.
func (m *Metadata) Get(namespace string, path ...string) (v any, ok bool) {
	s, ok := m.spaces[namespace]
	if !ok {
		return nil, false
	}
	return Follow(s, path...)
}

// Follow goes along a path of keys; without a path it returns tree itself. ok is false if something on the way is missing.
func Follow(tree map[string]any, path ...string) (v any, ok bool) {
	v = tree
	for _, p := range path {
		t, isMap := v.(map[string]any)
		if !isMap {
			return nil, false
		}
		if v, ok = t[p]; !ok {
			return nil, false
		}
	}
	return v, true
}

// Namespaces returns the namespaces in order of their names.
func (m *Metadata) Namespaces() []string {
	out := make([]string, 0, len(m.spaces))
	for n := range m.spaces {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

// TCPProxyCluster is the key of a connection's filter state under which a filter names the cluster for the TCP proxy behind it, as a
// string.
const TCPProxyCluster = "envoy.tcp_proxy.cluster"

// FilterState holds typed objects that filters leave for each other under agreed keys.
type FilterState struct{ objects map[string]any }

// Set puts an object under key, replacing what was there.
func (s *FilterState) Set(key string, v any) {
	if s.objects == nil {
		s.objects = map[string]any{}
	}
	s.objects[key] = v
}

// Get returns the object under key.
func (s *FilterState) Get(key string) (any, bool) {
	v, ok := s.objects[key]
	return v, ok
}
