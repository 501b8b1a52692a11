package format

import (
	"encoding/json"
	"errors"
	"fmt"
)

// maxCoalesceDepth bounds COALESCE inside COALESCE.
const maxCoalesceDepth = 8

// coalesce builds COALESCE({"operators": [...]}), which prints the first of its operators that has a value. An operator is a
// name, or {"command", "param", "max_length"}. Errors are Envoy's, apart from the JSON parser's own words.
func (b *builder) coalesce() (*operator, error) {
	if err := b.check(required | length); err != nil {
		return nil, err
	}
	if b.depth >= maxCoalesceDepth {
		return nil, fmt.Errorf("COALESCE is nested deeper than %d", maxCoalesceDepth)
	}
	var config any
	if err := json.Unmarshal([]byte(b.param), &config); err != nil {
		return nil, fmt.Errorf("COALESCE: failed to parse JSON configuration: %w", err)
	}
	object, _ := config.(map[string]any)
	list, ok := object["operators"]
	if !ok {
		return nil, errors.New("COALESCE: JSON configuration must contain 'operators' array")
	}
	entries, ok := list.([]any)
	if !ok {
		return nil, errors.New("COALESCE: 'operators' must be an array: key 'operators' missing or not an array")
	}
	if len(entries) == 0 {
		return nil, errors.New("COALESCE: 'operators' array must not be empty")
	}
	var ops []*operator
	for i, e := range entries {
		o, err := b.coalesced(e)
		if err != nil {
			return nil, fmt.Errorf("COALESCE: failed to parse operator at index %d: %w", i, err)
		}
		ops = append(ops, o)
	}
	return &operator{append: firstText(ops), json: firstJSON(ops, b.max), max: b.max}, nil
}

// coalesced builds one entry.
func (b *builder) coalesced(entry any) (*operator, error) {
	inner := &builder{opts: b.opts, max: -1, depth: b.depth + 1}
	switch e := entry.(type) {
	case string:
		inner.name = e
	case map[string]any:
		var ok bool
		if inner.name, ok = e["command"].(string); !ok {
			return nil, errors.New("operator object must have 'command' field: key 'command' missing or not a string")
		}
		if p, has := e["param"]; has {
			if inner.param, ok = p.(string); !ok {
				return nil, errors.New("'param' field must be a string: key 'param' missing or not a string")
			}
		}
		if m, has := e["max_length"]; has {
			n, ok := m.(float64)
			if !ok || n != float64(int64(n)) {
				return nil, errors.New("'max_length' field must be an integer: key 'max_length' missing or not an integer")
			}
			if n <= 0 {
				return nil, errors.New("'max_length' must be a positive integer")
			}
			inner.max = int(min(n, 1<<31-1))
		}
	default:
		return nil, errors.New("operator entry must be either a string (command name) or an object with 'command' field")
	}
	o, ok, err := inner.lookup()
	if err == nil && !ok {
		err = fmt.Errorf("unknown command: '%s'", inner.name)
	}
	return o, err
}

func firstText(ops []*operator) appendFunc {
	return func(dst []byte, c *Context) ([]byte, bool) {
		for _, o := range ops {
			var ok bool
			if dst, ok = o.text(dst, c); ok {
				return dst, true
			}
		}
		return dst, false
	}
}

// firstJSON keeps the type of what it prints; strings are cut to limit bytes.
func firstJSON(ops []*operator, limit int) appendFunc {
	short := make([]operator, len(ops))
	for i, o := range ops {
		short[i] = *o
		if limit >= 0 && o.json == nil && (o.max < 0 || o.max > limit) {
			short[i].max = limit
		}
	}
	return func(dst []byte, c *Context) ([]byte, bool) {
		for i := range short {
			var ok bool
			if dst, ok = short[i].appendJSON(dst, c); ok {
				return dst, true
			}
		}
		return dst, false
	}
}
