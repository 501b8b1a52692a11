package h2

import "github.com/dragoman-proxy/dragoman/api/http"

// Upgrades cross HTTP versions as Envoy has them: inside the proxy every upgrade looks like HTTP/1.1's ("connection: upgrade"), on
// HTTP/2 it is an extended CONNECT (RFC 8441).

// bytestream is the :protocol of a CONNECT that is no upgrade.
const bytestream = "bytestream"

// upgradeFromH2 turns an extended CONNECT that was received into an upgrade.
func upgradeFromH2(st *stream, m *http.HeaderMap) {
	protocol := m.Get(http.Protocol)
	if protocol == bytestream {
		return
	}
	m.SetConst(http.Method, "GET")
	m.SetConst(http.Upgrade, protocol)
	m.SetConst(http.Connection, "upgrade")
	m.Remove(http.Protocol)
	st.upgrade = protocol
}

// upgradeResponseFromH2 turns the answer to an upgrade that we sent back into HTTP/1.1's.
func upgradeResponseFromH2(st *stream, m *http.HeaderMap) {
	if m.Get(http.Status) != "200" {
		return
	}
	m.SetConst(http.Upgrade, st.upgrade)
	m.SetConst(http.Connection, "upgrade")
	m.SetConst(http.Status, "101")
}

// requestFix finds what a request's head must look like on the wire.
func requestFix(st *stream, h *http.HeaderMap, fix *headFix) *headFix {
	if h.Has(http.Upgrade) && hasUpgradeToken(h.Get(http.Connection)) {
		st.upgrade = st.arena.String(h.Get(http.Upgrade))
		st.isConnect = true
		*fix = headFix{method: "CONNECT", protocol: st.upgrade, noLength: h.Get(http.ContentLength) == "0"}
		return fix
	}
	switch h.Get(http.Method) {
	case "HEAD":
		st.isHead = true
	case "CONNECT":
		st.isConnect = true
		if !h.Has(http.Protocol) || h.Get(http.Protocol) == bytestream {
			*fix = headFix{connect: true}
			return fix
		}
	}
	return nil
}

// responseFix is the same for a response.
func responseFix(h *http.HeaderMap, fix *headFix) *headFix {
	if !h.Has(http.Upgrade) || !hasUpgradeToken(h.Get(http.Connection)) {
		return nil
	}
	*fix = headFix{noLength: h.Get(http.ContentLength) == "0"}
	if h.Get(http.Status) == "101" {
		fix.status = "200"
	}
	return fix
}

// hasUpgradeToken tells whether a connection header lists "upgrade".
func hasUpgradeToken(v string) bool {
	for len(v) > 0 {
		i := 0
		for i < len(v) && v[i] != ',' {
			i++
		}
		token := v[:i]
		for len(token) > 0 && (token[0] == ' ' || token[0] == '\t') {
			token = token[1:]
		}
		for k := len(token); k > 0 && (token[k-1] == ' ' || token[k-1] == '\t'); k = len(token) {
			token = token[:k-1]
		}
		if equalFold(token, "upgrade") {
			return true
		}
		v = v[min(i+1, len(v)):]
	}
	return false
}
