package h1

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// The bounds that Envoy sets to what a connection header may name.
const (
	maxNominated = 9
	maxTEBytes   = 255
)

// closes tells whether a message's head ends the connection after the message (RFC 9112, section 9.3). As Envoy, it minds
// proxy-connection too.
func closes(h *http.HeaderMap, v http.Proto) bool {
	conn := h.Get(http.Connection)
	if v == http.HTTP10 {
		if !token(conn, "keep-alive") {
			return true
		}
	} else if conn != "" && token(conn, "close") {
		return true
	}
	return h.Has(http.ProxyConnection) && token(h.Get(http.ProxyConnection), "close")
}

// upgrades tells whether a head asks for, or agrees to, another protocol.
func upgrades(h *http.HeaderMap) bool {
	return h.Has(http.Upgrade) && token(h.Get(http.Connection), "upgrade")
}

// ignoreUpgrade removes an upgrade that is not supported, with what the connection header says of it.
func ignoreUpgrade(h *http.HeaderMap) {
	h.Remove(http.Upgrade)
	h.Remove(http.HTTP2Settings)
	setConnection(h, func(t string) bool { return equalFold(t, "upgrade") || equalFold(t, "http2-settings") })
}

// keepUpgrade drops the elements of the upgrade header that are to be ignored, and tells whether one is left.
func (o *Options) keepUpgrade(h *http.HeaderMap) bool {
	dropElements(h, http.Upgrade, o.IgnoreUpgrade)
	return h.Has(http.Upgrade)
}

// setConnection drops the elements of the connection header for which drop is true.
func setConnection(h *http.HeaderMap, drop func(elem string) bool) {
	dropElements(h, http.Connection, drop)
}

// dropElements drops the elements of a list for which drop is true, and empty ones; the header too if none is left.
func dropElements(h *http.HeaderMap, id http.ID, drop func(elem string) bool) {
	f := h.Find(id)
	if f == nil {
		return
	}
	kept := h.Arena().Bytes(len(f.Value))[:0]
	for list := f.Value; len(list) > 0; {
		var t string
		if t, list = cut(list); t == "" || drop(t) {
			continue
		}
		if len(kept) > 0 {
			kept = append(kept, ',')
		}
		kept = append(kept, t...)
	}
	if len(kept) == 0 {
		h.Remove(id)
		return
	}
	h.Replace(f, http.View(kept))
}

// nominated removes the fields that the connection header names (RFC 9110, section 7.6.1), except those that a client could use
// to hide who it is, which are an error. "te" is kept if it says trailers.
func nominated(h *http.HeaderMap) *codec.Err {
	conn := h.Get(http.Connection)
	n, names := 0, false
	for list := conn; len(list) > 0; {
		full := list[0] != ','
		var t string
		t, list = cut(list)
		if full {
			n++
		}
		if n > maxNominated {
			return ErrConnection
		}
		switch {
		case t == "" || hopToken(t):
		case t[0] == ':' || equalFold(t, "x-forwarded-for") || equalFold(t, "x-forwarded-host") || equalFold(t, "x-forwarded-proto"):
			return ErrConnection
		default:
			names = true
		}
	}
	if !names {
		return nil
	}
	keepTE := false
	if f := h.Find(http.TE); f != nil && token(conn, "te") {
		if len(f.Value) > maxTEBytes {
			return ErrConnection
		}
		if keepTE = token(f.Value, "trailers"); keepTE {
			h.Replace(f, "trailers")
		}
	}
	drop := func(t string) bool { return !hopToken(t) && !(keepTE && equalFold(t, "te")) }
	setConnection(h, drop)
	for list := conn; len(list) > 0; {
		var t string
		if t, list = cut(list); t != "" && drop(t) {
			removeField(h, t)
		}
	}
	return nil
}

// hopToken tells whether t is an element of the connection header that names no field to remove.
func hopToken(t string) bool {
	switch len(t) {
	case len("close"):
		return equalFold(t, "close")
	case len("upgrade"):
		return equalFold(t, "upgrade")
	case len("keep-alive"):
		return equalFold(t, "keep-alive")
	case len("http2-settings"):
		return equalFold(t, "http2-settings")
	}
	return false
}

func removeField(h *http.HeaderMap, name string) {
	low := h.Arena().Bytes(len(name))
	for i := range low {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		low[i] = c
	}
	switch id := http.Lookup(low); id {
	case http.None:
		h.RemoveName(http.View(low))
	case http.Host:
		h.Remove(http.Authority)
	default:
		h.Remove(id)
	}
}
