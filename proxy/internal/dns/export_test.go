package dns

import (
	"net/netip"
	"time"
)

// ParseAnswer, Question, ParseHosts and Conf show the parsers to tests.
func ParseAnswer(b []byte, id uint16, name string, typ uint16) ([]Address, error) {
	a, err := parseAnswer(b, id, name, typ)
	return a.addresses, err
}

func Question(id uint16, name string, typ uint16) ([]byte, error) {
	return appendQuestion(nil, id, name, typ)
}

func ParseHosts(text, name string) []Address { return parseHosts(text, name) }

type Conf struct {
	Servers []netip.AddrPort
	Search  []string
	Ndots   int
	Timeout time.Duration
	Tries   int
}

func ParseResolvConf(text string) Conf {
	c := parseResolvConf(text)
	return Conf{c.servers, c.search, c.ndots, c.timeout, c.tries}
}

func Names(text, name string) []string { return parseResolvConf(text).names(name) }
