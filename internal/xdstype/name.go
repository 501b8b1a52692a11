package xdstype

import "google.golang.org/protobuf/encoding/protowire"

// StringField returns the string at field number num of a serialized message without decoding the rest; ok is false if it is not
// there or the bytes are broken before it.
func StringField(b []byte, num protowire.Number) (s string, ok bool) {
	for len(b) > 0 {
		n, typ, k := protowire.ConsumeTag(b)
		if k < 0 {
			return "", false
		}
		b = b[k:]
		if n == num && typ == protowire.BytesType {
			v, k := protowire.ConsumeBytes(b)
			return string(v), k >= 0
		}
		if k = protowire.ConsumeFieldValue(n, typ, b); k < 0 {
			return "", false
		}
		b = b[k:]
	}
	return "", false
}
