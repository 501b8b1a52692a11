package proxy

import "github.com/dragoman-proxy/dragoman/proxy/internal/server"

// RefusedField is a field of Envoy's configuration that a proxy refuses, because it does not have what the field asks for, or that it
// accepts and does nothing with.
type RefusedField struct {
	// Message is the full name of the message, Field the path from there in proto names; lists and maps add no step.
	Message, Field string
	// Value is the one that is refused, if others are not. Note says when the field is refused, if not always.
	Value, Note string
	// Ignored fields are not refused: they change nothing, and Note says why.
	Ignored bool
}

// RefusedFields lists what the engine refuses or ignores. What extensions refuse is in ext.Info.Refused.
func RefusedFields() []RefusedField {
	var out []RefusedField
	for _, t := range server.Gaps() {
		for _, r := range t.Rows() {
			out = append(out, RefusedField{Message: r.Message, Field: r.Field, Value: r.Value, Note: r.Note, Ignored: r.Ignored})
		}
	}
	return out
}
