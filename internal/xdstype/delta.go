package xdstype

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Versioned is a resource that a client has already, told at the start of a delta stream.
type Versioned struct {
	Name    string
	Version string
}

// DeltaRequest is an envoy.service.discovery.v3.DeltaDiscoveryRequest.
type DeltaRequest struct {
	Node        []byte // a serialized envoy.config.core.v3.Node, nil without
	TypeURL     string
	Subscribe   []string
	Unsubscribe []string
	Initial     []Versioned // a map on the wire: give it in a fixed order
	Nonce       string
	Error       *Status // of a NACK
}

// Append writes r behind b.
func (r *DeltaRequest) Append(b []byte) []byte {
	if r.Node != nil {
		b = putBytes(b, 1, r.Node)
	}
	b = putString(b, 2, r.TypeURL)
	b = putStrings(b, 3, r.Subscribe)
	b = putStrings(b, 4, r.Unsubscribe)
	for _, v := range r.Initial {
		b = putBytes(b, 5, putString(putString(nil, 1, v.Name), 2, v.Version))
	}
	b = putString(b, 6, r.Nonce)
	return putStatus(b, 7, r.Error)
}

// ParseDeltaRequest reads a DeltaRequest. Its Node points into b.
func ParseDeltaRequest(b []byte) (*DeltaRequest, error) {
	r := &DeltaRequest{}
	return r, fields(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1:
			r.Node = v
		case 2:
			return text(&r.TypeURL, v)
		case 3:
			return appendText(&r.Subscribe, v)
		case 4:
			return appendText(&r.Unsubscribe, v)
		case 5:
			var x Versioned
			err := fields(v, func(num protowire.Number, v []byte, _ uint64) error {
				switch num {
				case 1:
					return text(&x.Name, v)
				case 2:
					return text(&x.Version, v)
				}
				return nil
			})
			r.Initial = append(r.Initial, x)
			return err
		case 6:
			return text(&r.Nonce, v)
		case 7:
			return parseStatus(&r.Error, v)
		}
		return nil
	})
}

// Resource is an envoy.service.discovery.v3.Resource.
type Resource struct {
	Name       string
	Aliases    []string
	Version    string
	Any        Any
	HasAny     bool // false: a heartbeat that only renews the TTL
	TTL        time.Duration
	HasTTL     bool
	DoNotCache bool
}

// Append writes r behind b.
func (r *Resource) Append(b []byte) []byte {
	b = putString(b, 1, r.Version)
	if r.HasAny {
		b = putBytes(b, 2, r.Any.append(nil))
	}
	b = putString(b, 3, r.Name)
	b = putStrings(b, 4, r.Aliases)
	if r.HasTTL {
		d := putVarint(nil, 1, uint64(r.TTL/time.Second))
		b = putBytes(b, 6, putVarint(d, 2, uint64(r.TTL%time.Second)))
	}
	if r.DoNotCache {
		b = putBytes(b, 7, putVarint(nil, 1, 1))
	}
	return b
}

// ParseResource reads a Resource. Its value points into b.
func ParseResource(b []byte) (Resource, error) {
	var r Resource
	var secs, nanos int64
	err := fields(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1:
			return text(&r.Version, v)
		case 2:
			r.HasAny = true
			return r.Any.parse(v)
		case 3:
			return text(&r.Name, v)
		case 4:
			return appendText(&r.Aliases, v)
		case 6:
			r.HasTTL = true
			return fields(v, func(num protowire.Number, _ []byte, n uint64) error {
				switch num {
				case 1:
					secs = int64(n)
				case 2:
					nanos = int64(int32(n))
				}
				return nil
			})
		case 7:
			return fields(v, func(num protowire.Number, _ []byte, n uint64) error {
				r.DoNotCache = r.DoNotCache || num == 1 && n != 0
				return nil
			})
		case 8:
			return parseIdentifier(&r.Name, v)
		}
		return nil
	})
	const maxSecs = int64(1<<63-1) / int64(time.Second) // what a time.Duration holds, almost 300 years
	r.TTL = time.Duration(max(-maxSecs, min(secs, maxSecs-1)))*time.Second + time.Duration(nanos)
	return r, err
}

// DeltaResponse is an envoy.service.discovery.v3.DeltaDiscoveryResponse.
type DeltaResponse struct {
	Version      string // of the system; informs only
	Resources    []Resource
	TypeURL      string
	Nonce        string
	Removed      []string
	ControlPlane string // the identifier of who answered
}

// Append writes r behind b.
func (r *DeltaResponse) Append(b []byte) []byte {
	b = putString(b, 1, r.Version)
	for i := range r.Resources {
		b = putBytes(b, 2, r.Resources[i].Append(nil))
	}
	b = putString(b, 4, r.TypeURL)
	b = putString(b, 5, r.Nonce)
	b = putStrings(b, 6, r.Removed)
	if r.ControlPlane != "" {
		b = putBytes(b, 7, putString(nil, 1, r.ControlPlane))
	}
	return b
}

// ParseDeltaResponse reads a DeltaResponse. The resources' values point into b.
func ParseDeltaResponse(b []byte) (*DeltaResponse, error) {
	r := &DeltaResponse{}
	return r, fields(b, func(num protowire.Number, v []byte, _ uint64) error {
		switch num {
		case 1:
			return text(&r.Version, v)
		case 2:
			x, err := ParseResource(v)
			r.Resources = append(r.Resources, x)
			return err
		case 4:
			return text(&r.TypeURL, v)
		case 5:
			return text(&r.Nonce, v)
		case 6:
			return appendText(&r.Removed, v)
		case 7:
			return parseIdentifier(&r.ControlPlane, v)
		case 8:
			var name string
			err := parseIdentifier(&name, v)
			r.Removed = append(r.Removed, name)
			return err
		}
		return nil
	})
}
