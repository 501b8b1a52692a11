// Package verdict holds bootstraps with what the real Envoy says of them: rules that no message's description has. Its test compares
// what we say; the peers' tests ask the real Envoy whether it still says so. It is for tests, and runs on the thread that calls it.
package verdict

import (
	_ "embed" // cases.txt
	"fmt"
	"strings"
)

//go:embed cases.txt
var text string

// Case is one bootstrap.
type Case struct {
	Name string
	YAML string
	// Envoy and Here tell who accepts it.
	Envoy, Here bool
	// Stricter: what Envoy looks at only when it runs is looked at here.
	Stricter bool
	// Says is a part of what is said of one that is refused here, and by Envoy, too, if Envoy refuses it.
	Says string
}

// verdicts are the words of cases.txt.
var verdicts = map[string]Case{
	"accepted": {Envoy: true, Here: true},
	"refused":  {},
	"missing":  {Envoy: true}, // what it asks for is not there yet
	"stricter": {Envoy: true, Stricter: true},
}

// All returns the cases. A section of cases.txt begins with "=== NAME KIND VERDICT MESSAGE".
func All() ([]Case, error) {
	var list []Case
	for _, part := range strings.Split("\n"+text, "\n=== ")[1:] {
		head, body, _ := strings.Cut(part, "\n")
		words := strings.SplitN(head, " ", 4)
		if len(words) < 3 {
			return nil, fmt.Errorf("cases.txt: %q has no kind and verdict", head)
		}
		c, known := verdicts[words[2]]
		wrap, kind := wraps[words[1]]
		if !known || !kind {
			return nil, fmt.Errorf("cases.txt: %q: an unknown kind or verdict", head)
		}
		if len(words) == 4 {
			c.Says = words[3]
		}
		c.Name, c.YAML = words[0], short.Replace(wrap.before)+wrap.indent(short.Replace(strings.TrimSpace(body)))+"\n"
		list = append(list, c)
	}
	return list, nil
}

// wrap is what stands around the part of a bootstrap that a case is about.
type wrap struct{ before, indented string }

func (w wrap) indent(s string) string {
	return w.indented + strings.ReplaceAll(s, "\n", "\n"+w.indented)
}

const (
	clusters = "static_resources:\n  clusters: [{name: c, connect_timeout: 1s}, {name: d, connect_timeout: 1s}]\n"
	listener = clusters + "  listeners:\n  - name: l\n"
	hcm      = listener + `    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": @HCM
          stat_prefix: x
          http_filters: [{name: r, typed_config: {"@type": @ROUTER}}]
`
)

var wraps = map[string]wrap{
	"bootstrap": {},
	"cluster":   {"static_resources:\n  clusters:\n  - name: c\n    connect_timeout: 1s\n", "    "},
	"listener":  {listener, "    "},
	"hcm":       {hcm + "          route_config: {name: rc}\n", "          "},
	"routes":    {hcm + "          route_config:\n", "            "},
	"route": {hcm + `          route_config:
            name: rc
            virtual_hosts:
            - name: v
              domains: ["*"]
              routes:
`, "              "},
}

// short replaces what is long and says little.
var short = strings.NewReplacer(
	"@HCM", "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	"@ROUTER", "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
	"@TCP", `{name: t, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: c}}`,
	"@UPTLS", `"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext`,
	"@FILE", `"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog`,
	"@XFF", `"@type": type.googleapis.com/envoy.extensions.http.original_ip_detection.xff.v3.XffConfig`,
	"@UDPA", `"@type": type.googleapis.com/udpa.type.v1.TypedStruct, type_url: type.googleapis.com/envoy.extensions`,
	"@XDS", `"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: type.googleapis.com/envoy.extensions`,
	"@FC", `type.googleapis.com/envoy.config.route.v3.FilterConfig`,
)
