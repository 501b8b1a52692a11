package hcm

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// checkPath refuses what can be no path and applies the path rules. false: the request was answered.
func (s *Stream) checkPath(head *http.HeaderMap, method string) bool {
	cfg := s.h.cfg
	f := head.Find(http.Path)
	if f == nil || f.Value == "" {
		if f == nil && method == "CONNECT" {
			return true
		}
		s.directReply(404, "", "missing_path_rejected")
		return false
	}
	path := f.Value
	if path[0] != '/' {
		s.h.w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqNonRelativePath))
		s.directReply(404, "", "absolute_path_rejected")
		return false
	}
	if method == "QUERY" && !head.Has(http.ContentType) { // RFC 10008 demands one
		s.directReply(400, "", "query_missing_content_type")
		return false
	}
	if !cfg.NormalizePath && !cfg.MergeSlashes && cfg.EscapedSlashes == KeepSlashes && strings.IndexByte(path, '#') < 0 {
		return true
	}
	return s.normalizePath(head, f, path)
}

// normalizePath applies, in this order: the ban on fragments, path_with_escaped_slashes_action, normalize_path, merge_slashes.
func (s *Stream) normalizePath(head *http.HeaderMap, f *http.Header, path string) bool {
	cfg := s.h.cfg
	if i := strings.IndexByte(path, '#'); i >= 0 {
		if cfg.feature(rejectFragment, true) {
			s.badPath()
			return false
		}
		path = path[:i]
	}
	p, query := path, ""
	if i := strings.IndexByte(p, '?'); i >= 0 {
		p, query = p[:i], p[i+1:]
		query = path[len(p):]
	}
	redirect := false
	if cfg.EscapedSlashes != KeepSlashes {
		if n, found := unescapeSlashes(p); found {
			if cfg.EscapedSlashes == RejectSlashes {
				head.Replace(f, s.arena.Concat(n, query)) // what the log shows
				s.badPath()
				return false
			}
			redirect = cfg.EscapedSlashes == RedirectSlashes
			p = n
		}
	}
	if cfg.NormalizePath {
		n, ok := canonical(p)
		if !ok {
			s.badPath()
			return false
		}
		p = n
	}
	if cfg.MergeSlashes {
		p = mergeSlashes(p)
	}
	if len(p)+len(query) != len(f.Value) || p != f.Value[:len(p)] {
		head.Replace(f, s.arena.Concat(p, query))
	}
	if !redirect {
		return true
	}
	if s.grpc { // gRPC's clients follow no redirects
		s.badPath()
		return false
	}
	s.h.w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqRedirectedWithNormalizedPath))
	to := f.Value
	s.reply1(&filter.LocalReply{Code: 307, Details: "path_normalization_failed", GRPCStatus: -1, Modify: func(h *http.HeaderMap) {
		h.AddConst(http.Location, to)
	}})
	return false
}

func (s *Stream) badPath() {
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqFailedPathNormalization))
	s.directReply(400, "", "path_normalization_failed")
}

// unescapeSlashes replaces %2F and %5C by what they stand for.
func unescapeSlashes(p string) (out string, found bool) {
	i := strings.IndexByte(p, '%')
	if i < 0 {
		return p, false
	}
	b := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		if p[i] == '%' && i+2 < len(p) {
			switch hi, lo := p[i+1], p[i+2]|0x20; {
			case hi == '2' && lo == 'f':
				b, i, found = append(b, '/'), i+2, true
				continue
			case hi == '5' && lo == 'c':
				b, i, found = append(b, '\\'), i+2, true
				continue
			}
		}
		b = append(b, p[i])
	}
	if !found {
		return p, false
	}
	return string(b), true
}

// pathPlain are the bytes that canonical leaves alone wherever they stand; pathEscape those that it escapes.
var pathPlain, pathEscape = func() (plain, escape [256]bool) {
	for c := range plain {
		escape[c] = c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>^`{|}", byte(c)) >= 0
		plain[c] = !escape[c] && c != '%' && c != '\\'
	}
	return plain, escape
}()

// canonical is the path of the URL Standard's parser: dot segments are removed, escaped unreserved characters decoded, characters that
// must be escaped are, backslashes are slashes. Dots followed by parameters ("..;x") count as dots.
func canonical(p string) (string, bool) {
	plain := true
	for i := 0; i < len(p); i++ {
		if !pathPlain[p[i]] || p[i] == '.' && i > 0 && p[i-1] == '/' {
			plain = false
			break
		}
	}
	if plain {
		return p, true
	}
	p = stripParams(p)
	b := make([]byte, 0, len(p)+16)
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\':
			c = '/'
		case pathEscape[c]:
			b = append(b, '%', hex[c>>4], hex[c&15])
			continue
		case c == '%' && i+2 < len(p):
			hi, lo := unhex(p[i+1]), unhex(p[i+2])
			if hi < 0 || lo < 0 {
				break
			}
			d := byte(hi<<4 | lo)
			if d == 0 {
				return "", false
			}
			if unreserved(d) {
				b = append(b, d)
			} else {
				b = append(b, p[i:i+3]...)
			}
			i += 2
			continue
		}
		b = append(b, c)
	}
	return string(removeDots(b)), true
}

func unreserved(d byte) bool {
	return d >= 'a' && d <= 'z' || d >= 'A' && d <= 'Z' || d >= '0' && d <= '9' || d == '-' || d == '.' || d == '_' || d == '~'
}

func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// stripParams takes the parameters away from dot segments, as servlet containers do: what they would take for "..", we must too.
func stripParams(p string) string {
	if !strings.Contains(p, ".;") {
		return p
	}
	var b strings.Builder
	for i, seg := range strings.Split(p, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		if name, _, ok := strings.Cut(seg, ";"); ok && (name == "." || name == "..") {
			seg = name
		}
		b.WriteString(seg)
	}
	return b.String()
}

// removeDots removes "." and ".." segments in place (RFC 3986, section 5.2.4). p begins with a slash.
func removeDots(p []byte) []byte {
	w := 0 // p[:w] is done; it has no slash at its end
	for i := 0; i < len(p); {
		// p[i] is a slash; the segment ends at j.
		j := i + 1
		for j < len(p) && p[j] != '/' {
			j++
		}
		last := j == len(p)
		switch seg := p[i+1 : j]; {
		case string(seg) == ".":
		case string(seg) == "..":
			for w > 0 && p[w-1] != '/' {
				w--
			}
			if w > 0 {
				w--
			}
		default:
			w += copy(p[w:], p[i:j])
			i = j
			continue
		}
		if last {
			p[w] = '/'
			w++
		}
		i = j
	}
	return p[:w]
}

func mergeSlashes(p string) string {
	if !strings.Contains(p, "//") {
		return p
	}
	b := make([]byte, 0, len(p))
	for i := 0; i < len(p); i++ {
		if p[i] == '/' && len(b) > 0 && b[len(b)-1] == '/' {
			continue
		}
		b = append(b, p[i])
	}
	if len(b) == 1 {
		return "//" // a path of nothing but slashes begins and ends with one, as Envoy sees it
	}
	return string(b)
}

// normalizeHost takes the port or the last dot away from the authority, as configured.
func (s *Stream) normalizeHost(head *http.HeaderMap) {
	cfg := s.h.cfg
	if !cfg.StripAnyPort && !cfg.StripMatchingPort && !cfg.StripTrailingDot {
		return
	}
	f := head.Find(http.Authority)
	if f == nil {
		return
	}
	host := f.Value
	if i := strings.LastIndexByte(host, '.'); cfg.StripTrailingDot && i >= 0 {
		switch {
		case i == len(host)-1:
			host = host[:i]
		case host[i+1] == ':': // what follows is taken for a port
			host = s.arena.Concat(host[:i], host[i+1:])
		}
	}
	name, port := splitPort(host)
	if port != "" && (cfg.StripAnyPort || cfg.StripMatchingPort && port == portOf(s.h.c.Info.Local)) && head.Get(http.Method) != "CONNECT" {
		host = name
	}
	if len(host) != len(f.Value) {
		head.Replace(f, host)
	}
}

func splitPort(host string) (name, port string) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.IndexByte(host[i:], ']') >= 0 {
		return host, ""
	}
	for _, c := range host[i+1:] {
		if c < '0' || c > '9' {
			return host, ""
		}
	}
	return host[:i], host[i+1:]
}
