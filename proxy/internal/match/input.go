package match

import (
	"cmp"
	"errors"
	"strconv"
	"strings"

	corexdsv3 "github.com/cncf/xds/go/xds/core/v3"
	envv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/environment_variable/v3"
	netv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	sslv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/ssl/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// text is what an input gives; an empty one is none.
func text(s string) Value { return Value{Text: s, Has: s != ""} }

func (c *compiler[A]) input(x *corexdsv3.TypedExtensionConfig) (input, error) {
	m, err := unpack(x)
	if err != nil {
		return input{}, err
	}
	if m == nil {
		return input{}, errors.New("typed_config is required")
	}
	if _, ok := m.(*envv3.Config); ok {
		// Envoy 1.40 takes every variable for one that is not set: a configuration that has been tried there relies on it.
		return input{read: func(*Data) (Value, bool) { return Value{}, true }}, nil
	}
	if c.Input != nil {
		if err := c.Input(config.PayloadURL(x.GetTypedConfig())); err != nil {
			return input{}, err
		}
	}
	in, ok, err := connectionInput(m)
	if !ok && err == nil {
		if c.Connection {
			in, ok = onlyConnectionInput(m)
		} else {
			in, ok, err = requestInput(m)
		}
	}
	if err == nil && !ok {
		err = config.Unregistered(x.GetName(), x.GetTypedConfig())
	}
	return in, err
}

// requestInput makes the inputs of requests.
func requestInput(m any) (in input, ok bool, err error) {
	switch x := m.(type) {
	case *netv3.DynamicMetadataInput:
		return metadata(x), true, nil
	case *matcherv3.HttpRequestHeaderMatchInput:
		return header(x.HeaderName, func(d *Data) *http.HeaderMap { return d.Request }), true, nil
	case *matcherv3.HttpRequestTrailerMatchInput:
		return header(x.HeaderName, func(d *Data) *http.HeaderMap { return d.RequestTrailers }), true, nil
	case *matcherv3.HttpResponseHeaderMatchInput:
		return header(x.HeaderName, func(d *Data) *http.HeaderMap { return d.Response }), true, nil
	case *matcherv3.HttpResponseTrailerMatchInput:
		return header(x.HeaderName, func(d *Data) *http.HeaderMap { return d.ResponseTrailers }), true, nil
	case *matcherv3.HttpRequestQueryParamMatchInput:
		return input{read: func(d *Data) (Value, bool) {
			if d.Request == nil {
				return Value{}, false
			}
			v, has := QueryParam(d.Request.Get(http.Path), x.QueryParam)
			return Value{Text: v, Has: has}, true
		}}, true, nil
	case *matcherv3.HttpResponseStatusCodeMatchInput:
		return status(strconv.Itoa), true, nil
	case *matcherv3.HttpResponseStatusCodeClassMatchInput:
		return status(func(code int) string {
			if code < 100 || code > 599 {
				return ""
			}
			return strconv.Itoa(code/100) + "xx"
		}), true, nil
	case *matcherv3.HttpResponseLocalReplyMatchInput:
		return input{read: func(d *Data) (Value, bool) {
			return Value{Text: strconv.FormatBool(d.LocalReply), Has: true}, d.Response != nil
		}}, true, nil
	}
	return in, false, nil
}

// header reads all values of a header, joined by commas.
func header(name string, of func(d *Data) *http.HeaderMap) input {
	name = strings.ToLower(name)
	if name == "host" {
		name = ":authority"
	}
	id := http.Lookup(name)
	return input{read: func(d *Data) (v Value, ok bool) {
		h := of(d)
		if h == nil {
			return v, false
		}
		if id != http.None && !h.Has(id) {
			return v, true
		}
		all := h.All()
		for i := range all {
			f := &all[i]
			if f.ID != id || id == http.None && f.Name != name {
				continue
			}
			if v.Has {
				v.Text += "," + f.Value
			} else {
				v.Text, v.Has = f.Value, true
			}
		}
		return v, true
	}}
}

func status(print func(code int) string) input {
	return input{read: func(d *Data) (Value, bool) {
		if d.Response == nil {
			return Value{}, false
		}
		return text(print(d.Response.StatusCode())), true
	}}
}

// connectionInput makes the inputs that connections and requests have.
func connectionInput(m any) (in input, ok bool, err error) {
	switch x := m.(type) {
	case *netv3.DestinationIPInput:
		return address(func(d *Data) (a network.Address) { return localOf(d.conn()) }), true, nil
	case *netv3.DestinationPortInput:
		return port(func(d *Data) (a network.Address) { return localOf(d.conn()) }), true, nil
	case *netv3.SourceIPInput:
		return address((*Data).remote), true, nil
	case *netv3.SourcePortInput:
		return port((*Data).remote), true, nil
	case *netv3.DirectSourceIPInput:
		return address(func(d *Data) network.Address { return directOf(d.conn()) }), true, nil
	case *netv3.SourceTypeInput:
		return input{read: func(d *Data) (Value, bool) {
			if c := d.conn(); c != nil && sameHost(d.remote(), c.Local) {
				return text("local"), true
			}
			return Value{}, true
		}}, true, nil
	case *netv3.ServerNameInput:
		return fact(func(c *network.ConnInfo) string { return c.Said().ServerName }), true, nil
	case *netv3.NetworkNamespaceInput:
		return input{read: func(*Data) (Value, bool) { return Value{}, true }}, true, nil // sockets of other namespaces are refused
	case *netv3.FilterStateInput:
		if x.Field != "" {
			return fields(x.Key, x.Field), true, nil
		}
		return input{read: func(d *Data) (Value, bool) {
			s, has := State(d.Info, d.conn(), x.Key)
			return Value{Text: s, Has: has}, true
		}}, true, nil
	case *sslv3.UriSanInput:
		return certificate(uriSAN), true, nil
	case *sslv3.DnsSanInput:
		return certificate(dnsSAN), true, nil
	case *sslv3.SubjectInput:
		return certificate(subject), true, nil
	}
	return in, false, nil
}

// onlyConnectionInput makes the inputs that only connections have.
func onlyConnectionInput(m any) (in input, ok bool) {
	switch m.(type) {
	case *netv3.TransportProtocolInput:
		return fact(func(c *network.ConnInfo) string { return cmp.Or(c.Said().Transport, "raw_buffer") }), true
	case *netv3.ApplicationProtocolInput:
		return fact(func(c *network.ConnInfo) string {
			var b strings.Builder
			for i, p := range c.Said().ALPN {
				if i > 0 {
					b.WriteByte(',')
				}
				b.WriteString("'" + p + "'")
			}
			return b.String()
		}), true
	}
	return in, false
}

// fact reads something that is known of the connection.
func fact(f func(c *network.ConnInfo) string) input {
	return input{read: func(d *Data) (Value, bool) {
		if c := d.conn(); c != nil {
			return text(f(c)), true
		}
		return Value{}, true
	}}
}

func localOf(c *network.ConnInfo) (a network.Address) {
	if c != nil {
		a = c.Local
	}
	return a
}

// directOf is the address that the socket has for its peer.
func directOf(c *network.ConnInfo) (a network.Address) {
	switch {
	case c == nil:
	case c.Direct != nil:
		a = c.Direct[1]
	default:
		a = c.Remote
	}
	return a
}

func address(of func(d *Data) network.Address) input {
	return input{read: func(d *Data) (Value, bool) {
		ip := of(d).IP
		return Value{Addr: ip.Addr().Unmap().WithZone(""), Has: ip.IsValid()}, true
	}}
}

func port(of func(d *Data) network.Address) input {
	return input{read: func(d *Data) (Value, bool) {
		a := of(d).IP
		if !a.IsValid() {
			return Value{}, true
		}
		return text(strconv.Itoa(int(a.Port()))), true
	}}
}

// sameHost tells whether two ends are the same machine's.
func sameHost(a, b network.Address) bool {
	if !a.IP.IsValid() || !b.IP.IsValid() {
		return a.Path != "" || b.Path != ""
	}
	return a.IP.Addr().IsLoopback() || a.IP.Addr() == b.IP.Addr()
}

// State returns the text of an object of a stream's filter state, or of its connection's. Both may be nil.
func State(info *stream.Info, conn *network.ConnInfo, key string) (string, bool) {
	switch x := object(info, conn, key).(type) {
	case string:
		return x, true
	case stream.PlainText:
		return string(x.AppendPlain(nil)), true
	}
	return "", false
}

func object(info *stream.Info, conn *network.ConnInfo, key string) any {
	if info != nil {
		if info.HasFilterState() {
			if o, ok := info.FilterState().Get(key); ok {
				return o
			}
		}
		if conn == nil {
			conn = info.Conn
		}
	}
	if conn != nil && conn.HasFilterState() {
		o, _ := conn.FilterState().Get(key)
		return o
	}
	return nil
}

// fields reads a field of a filter state object.
func fields(key, field string) input {
	return input{read: func(d *Data) (Value, bool) {
		o, ok := object(d.Info, d.conn(), key).(stream.Fields)
		if !ok {
			return Value{}, true
		}
		v, ok := o.Field(field)
		switch x := v.(type) {
		case string:
			return Value{Text: x, Has: ok}, true
		case int64:
			return Value{Text: strconv.FormatInt(x, 10), Has: ok}, true
		}
		return Value{}, true
	}}
}

func metadata(x *netv3.DynamicMetadataInput) input {
	path := make([]string, len(x.Path))
	for i, p := range x.Path {
		path[i] = p.GetKey()
	}
	return input{kind: plains, read: func(d *Data) (v Value, ok bool) {
		switch c := d.conn(); {
		case d.Info != nil:
			if d.Info.HasMetadata() {
				v.Plain, v.Has = d.Info.Metadata().Get(x.Filter, path...)
			}
		case c != nil && c.HasMetadata():
			v.Plain, v.Has = c.Metadata().Get(x.Filter, path...)
		}
		return v, true
	}}
}
