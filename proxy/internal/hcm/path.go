package hcm

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// normalizePath applies normalize_path and merge_slashes. false: the request was answered.
func (s *Stream) normalizePath(head *http.HeaderMap, path string, connect bool) bool {
	cfg := s.h.cfg
	if connect || !cfg.NormalizePath && !cfg.MergeSlashes {
		return true
	}
	query := ""
	p := path
	if i := strings.IndexByte(p, '?'); i >= 0 {
		p, query = p[:i], p[i:]
	}
	changed := p
	if cfg.NormalizePath {
		n, ok := canonical(p)
		if !ok {
			s.h.w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqFailedPathNormalization))
			s.directReply(400, "", "path_normalization_failed")
			return false
		}
		changed = n
	}
	if cfg.MergeSlashes {
		changed = mergeSlashes(changed)
	}
	if changed != p {
		head.Set(http.Path, changed+query)
	}
	return true
}

// canonical applies RFC 3986, sections 6.2.2 and 5.2.4: percent-encoded unreserved characters are decoded and dot segments
// removed. Backslashes become slashes, as browsers have it.
func canonical(p string) (string, bool) {
	if strings.IndexByte(p, '%') < 0 && !strings.Contains(p, "/.") && strings.IndexByte(p, '\\') < 0 {
		return p, true
	}
	var b strings.Builder
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '\\':
			c = '/'
		case c == '%' && i+2 < len(p):
			hi, lo := unhex(p[i+1]), unhex(p[i+2])
			if hi < 0 || lo < 0 {
				return "", false
			}
			d := byte(hi<<4 | lo)
			if d == 0 {
				return "", false
			}
			if d >= 'a' && d <= 'z' || d >= 'A' && d <= 'Z' || d >= '0' && d <= '9' || d == '-' || d == '.' || d == '_' || d == '~' {
				b.WriteByte(d)
			} else {
				b.WriteByte('%')
				b.WriteByte(upperHex(p[i+1]))
				b.WriteByte(upperHex(p[i+2]))
			}
			i += 2
			continue
		case c == '%':
			return "", false
		}
		b.WriteByte(c)
	}
	return removeDots(b.String()), true
}

func upperHex(c byte) byte {
	if c >= 'a' && c <= 'f' {
		return c - 'a' + 'A'
	}
	return c
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

// removeDots removes "." and ".." segments. p begins with a slash.
func removeDots(p string) string {
	segs := strings.Split(p[1:], "/")
	out := segs[:0]
	for i, seg := range segs {
		last := i == len(segs)-1
		switch seg {
		case ".":
			if last {
				out = append(out, "")
			}
		case "..":
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, seg)
		}
	}
	return "/" + strings.Join(out, "/")
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
	return string(b)
}
