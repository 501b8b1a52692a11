package configfile

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Short is the short form of a configuration: what most proxies need, from which Expand makes a plain bootstrap.
type Short struct {
	// Listen are addresses of HTTP listeners: "8080", ":8080", "127.0.0.1:8080".
	Listen []string
	// Admin is the address of the admin interface; "" means none. A port alone is bound on the loopback.
	Admin string
	// Cert and Key are the files of a certificate: the listeners then speak TLS.
	Cert, Key string
	// AccessLog is a file for the access log, "-" for standard output; "" means none.
	AccessLog string
	// Rules say where requests go; the first one that fits holds within a host.
	Rules []Rule
	// TCP are listeners that pass connections on.
	TCP []TCP
}

// Rule is one route.
type Rule struct {
	// Match is [HOST]/PREFIX, or [HOST]=/PATH for one path: "/", "/api/", "example.com/", "=/health".
	Match string
	// To are upstreams of one kind: http://host:port, https://, h2c:// (HTTP/2 without TLS), h2:// (with TLS).
	To []string
	// Redirect is "https", or a URL; Respond is "200" or "200 text".
	Redirect, Respond string
	// Timeout is the route's, "" for Envoy's 15s.
	Timeout string
}

// TCP is a listener and what is behind it.
type TCP struct {
	Listen string
	To     []string
}

// Merge adds to s what o says; where there can be one value only, o's holds.
func (s *Short) Merge(o *Short) {
	s.Listen = append(s.Listen, o.Listen...)
	s.Rules = append(s.Rules, o.Rules...)
	s.TCP = append(s.TCP, o.TCP...)
	for _, x := range []struct {
		to   *string
		from string
	}{{&s.Admin, o.Admin}, {&s.Cert, o.Cert}, {&s.Key, o.Key}, {&s.AccessLog, o.AccessLog}} {
		if x.from != "" {
			*x.to = x.from
		}
	}
}

// ParseShort reads the short form from YAML or JSON.
func ParseShort(f *File) (*Short, error) {
	s := &Short{}
	r := shortReader{file: f.Path}
	r.fields(f.Root, "", map[string]func(*Value, string){
		"listen":     func(v *Value, at string) { s.Listen = r.texts(v, at) },
		"admin":      func(v *Value, at string) { s.Admin = r.text(v, at) },
		"access_log": func(v *Value, at string) { s.AccessLog = r.text(v, at) },
		"tls": func(v *Value, at string) {
			r.fields(v, at, map[string]func(*Value, string){
				"cert": func(v *Value, at string) { s.Cert = r.text(v, at) },
				"key":  func(v *Value, at string) { s.Key = r.text(v, at) },
			})
		},
		"routes": func(v *Value, at string) {
			for i, x := range r.list(v, at) {
				s.Rules = append(s.Rules, r.rule(x, fmt.Sprintf("%s[%d]", at, i)))
			}
		},
		"tcp": func(v *Value, at string) {
			for i, x := range r.list(v, at) {
				var t TCP
				r.fields(x, fmt.Sprintf("%s[%d]", at, i), map[string]func(*Value, string){
					"listen": func(v *Value, at string) { t.Listen = r.text(v, at) },
					"to":     func(v *Value, at string) { t.To = r.texts(v, at) },
				})
				s.TCP = append(s.TCP, t)
			}
		},
	})
	return s, r.err
}

// shortReader keeps the first error.
type shortReader struct {
	file string
	err  error
}

func (r *shortReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(r.file+": "+format, args...)
	}
}

func (r *shortReader) fields(v *Value, at string, known map[string]func(*Value, string)) {
	if v.Kind != Map {
		r.fail("%s is to be a map", at)
		return
	}
	for i, k := range v.Keys {
		f := known[k]
		if f == nil {
			var names []string
			for n := range known {
				names = append(names, n)
			}
			slices.Sort(names)
			r.fail("the short form has no %s; it has %s", below(at, k), strings.Join(names, ", "))
			return
		}
		f(v.Items[i], below(at, k))
	}
}

func (r *shortReader) text(v *Value, at string) string {
	if v.Kind >= Map {
		r.fail("%s is to be a text", at)
	}
	return v.Text
}

func (r *shortReader) list(v *Value, at string) []*Value {
	if v.Kind != List {
		r.fail("%s is to be a list", at)
	}
	return v.Items
}

func (r *shortReader) texts(v *Value, at string) (list []string) {
	if v.Kind != List {
		return []string{r.text(v, at)}
	}
	for i, x := range v.Items {
		list = append(list, r.text(x, fmt.Sprintf("%s[%d]", at, i)))
	}
	return list
}

func (r *shortReader) rule(v *Value, at string) (rule Rule) {
	r.fields(v, at, map[string]func(*Value, string){
		"match":    func(v *Value, at string) { rule.Match = r.text(v, at) },
		"to":       func(v *Value, at string) { rule.To = r.texts(v, at) },
		"redirect": func(v *Value, at string) { rule.Redirect = r.text(v, at) },
		"respond":  func(v *Value, at string) { rule.Respond = r.text(v, at) },
		"timeout":  func(v *Value, at string) { rule.Timeout = r.text(v, at) },
	})
	return rule
}

// ParseRule reads a rule of the command line: MATCH=TARGET. A target is one of a Rule's To (several with commas), redirect:https,
// redirect:URL, or respond:STATUS[ TEXT].
func ParseRule(s string) (Rule, error) {
	i := strings.Index(s[min(1, len(s)):], "=") + 1 // a leading = belongs to the match
	if i < 1 || strings.HasPrefix(s[i:], "=/") && !strings.Contains(s[i+1:], "=") {
		return Rule{}, fmt.Errorf("route %q: write MATCH=TARGET, such as /api/=http://127.0.0.1:9000", s)
	}
	if strings.HasPrefix(s[i:], "=/") { // example.com=/path=TARGET
		i += 1 + strings.Index(s[i+1:], "=")
	}
	r, target := Rule{Match: s[:i]}, s[i+1:]
	switch {
	case strings.HasPrefix(target, "redirect:"):
		r.Redirect = target[len("redirect:"):]
	case strings.HasPrefix(target, "respond:"):
		r.Respond = target[len("respond:"):]
	default:
		r.To = strings.Split(target, ",")
	}
	return r, nil
}

// hostPort splits an address of which the host may be missing.
func hostPort(s, host string) (string, string, error) {
	if _, err := strconv.ParseUint(s, 10, 16); err == nil {
		return host, s, nil
	}
	h, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", "", fmt.Errorf("address %q: write HOST:PORT, or a port alone", s)
	}
	if _, err := strconv.ParseUint(p, 10, 16); err != nil {
		return "", "", fmt.Errorf("address %q: the port is a number from 0 to 65535", s)
	}
	if h == "" {
		h = host
	}
	return h, p, nil
}

// upstream is one of a rule's targets.
type upstream struct{ scheme, host, port string }

func parseUpstream(s string) (upstream, error) {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" {
		return upstream{}, fmt.Errorf("upstream %q: write http://HOST:PORT", s)
	}
	ports := map[string]string{"http": "80", "https": "443", "h2c": "80", "h2": "443", "tcp": ""}
	port, ok := ports[u.Scheme]
	if !ok {
		return upstream{}, fmt.Errorf("upstream %q: the kinds are http, https, h2c (HTTP/2 without TLS) and h2 (with TLS)", s)
	}
	if u.Path != "" && u.Path != "/" {
		return upstream{}, fmt.Errorf("upstream %q: a path cannot be given here; requests keep theirs", s)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if port == "" {
		return upstream{}, fmt.Errorf("upstream %q has no port", s)
	}
	return upstream{u.Scheme, u.Hostname(), port}, nil
}

func (u upstream) hasTLS() bool { return u.scheme == "https" || u.scheme == "h2" }

func (u upstream) isIP() bool {
	_, err := netip.ParseAddr(u.host)
	return err == nil
}
