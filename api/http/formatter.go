package http

// KeyFormatter remembers how the names of a head were written on the wire, so that the other side can write them the same way
// (Envoy's stateful header formatters, such as preserve_case). It belongs to one HeaderMap and lives as long as its stream.
type KeyFormatter interface {
	// ProcessKey is told each name as it was received. name is valid until the stream is destroyed.
	ProcessKey(name string)
	// Format returns how name (lower-case) is to be written.
	Format(name string) string
	// SetReason is told the reason phrase of a response; Reason returns the phrase to write, "" for the standard one.
	SetReason(reason string)
	Reason() string
}

// SetFormatter sets the formatter that HTTP/1 encoders ask for the names of m; nil for none.
func (m *HeaderMap) SetFormatter(f KeyFormatter) { m.formatter = f }

// Formatter returns the formatter of m, nil if there is none.
func (m *HeaderMap) Formatter() KeyFormatter { return m.formatter }
