package header_to_metadata //nolint:revive // Envoy's name

// Decode and Parse are what is fuzzed.
var (
	Decode = decode
	Parse  = func(t int32, s string) (any, bool) { return parse(valueType(t), s) }
)
