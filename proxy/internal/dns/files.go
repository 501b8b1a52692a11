package dns

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
)

// Where the system says whom to ask, and what it knows itself.
const (
	resolvPath = "/etc/resolv.conf"
	hostsPath  = "/etc/hosts"
	// maxFile bounds how much of them is read.
	maxFile = 1 << 20
)

// resolvConf is what /etc/resolv.conf says, and Options above it.
type resolvConf struct {
	servers []netip.AddrPort
	search  []string
	ndots   int
	timeout time.Duration
	tries   int
}

func readResolvConf(o *Options) *resolvConf {
	c := parseResolvConf(readFile(resolvPath))
	if len(o.Servers) > 0 {
		c.servers = o.Servers
	}
	if len(c.servers) == 0 {
		c.servers = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 53)}
	}
	if o.NoSearch {
		c.search = nil
	}
	if o.Timeout > 0 {
		c.timeout = o.Timeout
	}
	if o.Tries > 0 {
		c.tries = o.Tries
	}
	return c
}

func readFile(path string) string {
	b, err := os.ReadFile(path)
	if err != nil || len(b) > maxFile {
		return ""
	}
	return string(b)
}

// parseResolvConf reads resolv.conf(5). What it cannot read it leaves out, as resolvers do.
func parseResolvConf(text string) *resolvConf {
	c := &resolvConf{ndots: 1, timeout: 5 * time.Second, tries: 2}
	for line := range strings.Lines(text) {
		if i := strings.IndexAny(line, "#;"); i >= 0 {
			line = line[:i]
		}
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "nameserver":
			if ip, err := netip.ParseAddr(f[1]); err == nil && len(c.servers) < 3 {
				c.servers = append(c.servers, netip.AddrPortFrom(ip, 53))
			}
		case "domain", "search":
			c.search = c.search[:0]
			for _, s := range f[1:] {
				if s = strings.Trim(s, "."); s != "" {
					c.search = append(c.search, s)
				}
			}
		case "options":
			for _, o := range f[1:] {
				c.option(o)
			}
		}
	}
	return c
}

func (c *resolvConf) option(o string) {
	name, value, _ := strings.Cut(o, ":")
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return
	}
	switch name {
	case "ndots":
		c.ndots = min(n, 15)
	case "timeout":
		c.timeout = time.Duration(max(min(n, 30), 1)) * time.Second
	case "attempts":
		c.tries = max(min(n, 5), 1)
	}
}

// names returns what to ask for in turn: the name itself, and as the search list completes it; first itself if it has enough dots.
func (c *resolvConf) names(name string) []string {
	if strings.HasSuffix(name, ".") || len(c.search) == 0 {
		return []string{name}
	}
	out := make([]string, 0, len(c.search)+1)
	enough := strings.Count(name, ".") >= c.ndots
	if enough {
		out = append(out, name)
	}
	for _, s := range c.search {
		out = append(out, name+"."+s)
	}
	if !enough {
		out = append(out, name)
	}
	return out
}

// readHosts returns the addresses that /etc/hosts has for name.
func readHosts(name string, family Family) []Address {
	return Select(parseHosts(readFile(hostsPath), strings.TrimSuffix(name, ".")), family)
}

func parseHosts(text, name string) (out []Address) {
	for line := range strings.Lines(text) {
		if i := strings.IndexByte(line, '#'); i >= 0 {
			line = line[:i]
		}
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		ip, err := netip.ParseAddr(f[0])
		if err != nil {
			continue
		}
		for _, n := range f[1:] {
			if strings.EqualFold(strings.TrimSuffix(n, "."), name) {
				out = append(out, Address{IP: ip.Unmap()})
				break
			}
		}
	}
	return out
}
