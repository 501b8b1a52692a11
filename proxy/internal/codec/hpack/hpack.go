// Package hpack is the header compression of HTTP/2 (RFC 7541): a Decoder that puts fields into a stream's arena, and an
// Encoder that appends fields to a write buffer.
//
// Both belong to one connection and its worker. Neither allocates once its dynamic table has grown to what the peer uses, and
// neither keeps a view of its input. The package knows nothing of frames, and does not judge whether a header list makes sense;
// it only reports characters that no field may have.
package hpack

import (
	"errors"

	"github.com/dragoman-proxy/dragoman/api/http"
)

// Field is one decoded header field.
type Field struct {
	Name  string
	Value string
	ID    http.ID
	// Bad has BadName or BadValue set if the name or value has characters that are not allowed.
	Bad Bad
}

// Bad says what is wrong with a field's characters.
type Bad uint8

// The faults of a field.
const (
	// BadName: the name is empty or has characters other than those of a lower-case token. A leading colon is allowed.
	BadName Bad = 1 << iota
	// BadValue: the value has control characters other than tab.
	BadValue
)

// MaxString is the longest name or value that a Decoder takes, as it is on the wire: Huffman code may make 8/5 of it. A longer one is an
// error of the connection, as in Envoy.
const MaxString = 64 << 10

// DefaultTableSize is the size of the dynamic table until SETTINGS change it (RFC 9113, section 6.5.2).
const DefaultTableSize = 4096

// entryOverhead is what an entry counts beyond its bytes (RFC 7541, section 4.1).
const entryOverhead = 32

// Errors of Next. ErrShort asks for more bytes; the others mean that the connection's state is lost (COMPRESSION_ERROR).
var (
	ErrShort      = errors.New("hpack: field is not complete")
	errIndex      = errors.New("hpack: no such table entry")
	errInt        = errors.New("hpack: integer is too large")
	errHuffman    = errors.New("hpack: invalid huffman code")
	errLong       = errors.New("hpack: string is too long")
	errSizeUpdate = errors.New("hpack: table size update above the limit or not at the start")
	errNoUpdate   = errors.New("hpack: missing table size update")
)
