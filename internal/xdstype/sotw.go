package xdstype

import "google.golang.org/protobuf/encoding/protowire"

// Request is an envoy.service.discovery.v3.DiscoveryRequest.
type Request struct {
	Version string
	Node    []byte // a serialized envoy.config.core.v3.Node, nil without
	Names   []string
	TypeURL string
	Nonce   string
	Error   *Status // of a NACK
}

// Append writes r behind b.
func (r *Request) Append(b []byte) []byte {
	b = putString(b, 1, r.Version)
	if r.Node != nil {
		b = putBytes(b, 2, r.Node)
	}
	b = putStrings(b, 3, r.Names)
	b = putString(b, 4, r.TypeURL)
	b = putString(b, 5, r.Nonce)
	return putStatus(b, 6, r.Error)
}

// ParseRequest reads a Request. Its Node points into b.
func ParseRequest(b []byte) (*Request, error) {
	r := &Request{}
	return r, fields(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1:
			return text(&r.Version, v)
		case 2:
			r.Node = v
		case 3:
			return appendText(&r.Names, v)
		case 4:
			return text(&r.TypeURL, v)
		case 5:
			return text(&r.Nonce, v)
		case 6:
			return parseStatus(&r.Error, v)
		}
		return nil
	})
}

// Response is an envoy.service.discovery.v3.DiscoveryResponse.
type Response struct {
	Version      string
	Resources    []Any
	TypeURL      string
	Nonce        string
	ControlPlane string // the identifier of who answered
}

// Append writes r behind b.
func (r *Response) Append(b []byte) []byte {
	b = putString(b, 1, r.Version)
	for i := range r.Resources {
		b = putBytes(b, 2, r.Resources[i].append(nil))
	}
	b = putString(b, 4, r.TypeURL)
	b = putString(b, 5, r.Nonce)
	if r.ControlPlane != "" {
		b = putBytes(b, 6, putString(nil, 1, r.ControlPlane))
	}
	return b
}

// ParseResponse reads a Response. The resources' values point into b.
func ParseResponse(b []byte) (*Response, error) {
	r := &Response{}
	return r, fields(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1:
			return text(&r.Version, v)
		case 2:
			var a Any
			err := a.parse(v)
			r.Resources = append(r.Resources, a)
			return err
		case 4:
			return text(&r.TypeURL, v)
		case 5:
			return text(&r.Nonce, v)
		case 6:
			return parseIdentifier(&r.ControlPlane, v)
		}
		return nil
	})
}
