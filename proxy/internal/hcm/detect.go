package hcm

import (
	"net/netip"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Detector is one way to find a request's client when the peer is a proxy (original_ip_detection_extensions).
type Detector interface {
	Detect(head *http.HeaderMap, peer network.Address) Detected
}

// Detected is what a Detector found.
type Detected struct {
	// Addr is the client, invalid if it is not known.
	Addr netip.Addr
	// Trusted: Addr may make the request an internal one.
	Trusted bool
	// Reject is the status to refuse the request with, 0 to go on.
	Reject int
	// AppendXFF: the peer is to be appended to x-forwarded-for.
	AppendXFF bool
}

// detect asks the detectors, or takes what x-forwarded-for says.
func (s *Stream) detect(head *http.HeaderMap) (final network.Address, trusted, ok bool) {
	cfg := s.h.cfg
	peer := s.h.c.Info.Remote
	if cfg.Detection == nil {
		if !head.Has(http.XForwardedFor) {
			return peer, false, true
		}
		a, single, found := fromXFF(head.Get(http.XForwardedFor), cfg.XFFTrustedHops)
		if !found {
			return peer, false, true
		}
		s.inf.Remote = network.AddrFrom(netip.AddrPortFrom(a, 0))
		return s.inf.Remote, single, true
	}
	for _, d := range cfg.Detection {
		r := d.Detect(head, peer)
		if r.Reject != 0 {
			s.rejected(r.Reject)
			return peer, false, false
		}
		if r.AppendXFF {
			s.appendXFF(head)
		}
		if r.Addr.IsValid() {
			s.inf.Remote = network.AddrFrom(netip.AddrPortFrom(r.Addr, 0))
			return s.inf.Remote, r.Trusted, true
		}
	}
	return peer, false, true
}

// xffDetector reads x-forwarded-for: the address that is so many hops before the last, or the last one that is no trusted proxy.
type xffDetector struct {
	hops    int
	trusted []netip.Prefix
	append  bool
}

// Detect implements Detector.
func (d *xffDetector) Detect(head *http.HeaderMap, peer network.Address) Detected {
	xff := head.Get(http.XForwardedFor)
	if len(d.trusted) == 0 {
		a, single, _ := fromXFF(xff, d.hops)
		return Detected{Addr: a, Trusted: single, AppendXFF: d.append}
	}
	if !inAny(d.trusted, peer.IP.Addr()) {
		return Detected{AppendXFF: d.append}
	}
	a := lastNotTrusted(xff, d.trusted)
	return Detected{Addr: a, AppendXFF: d.append}
}

// headerDetector takes the address from a header.
type headerDetector struct {
	name    string
	trusted bool
	reject  int
}

// Detect implements Detector.
func (d *headerDetector) Detect(head *http.HeaderMap, _ network.Address) Detected {
	v, _ := head.GetName(d.name)
	if a, err := netip.ParseAddr(v); err == nil && a.Zone() == "" {
		return Detected{Addr: a, Trusted: d.trusted}
	}
	return Detected{Reject: d.reject}
}

// fromXFF returns the address hops places before the last one of an x-forwarded-for header. single: it is the only one there.
func fromXFF(xff string, hops int) (a netip.Addr, single, ok bool) {
	for i := 0; i < hops; i++ {
		k := strings.LastIndexByte(xff, ',')
		if k < 0 {
			return netip.Addr{}, false, false
		}
		xff = xff[:k]
	}
	k := strings.LastIndexByte(xff, ',')
	if k >= 0 && k+1 < len(xff) {
		xff = xff[k+1:]
	}
	a, ok = parseIP(xff)
	return a, ok && k < 0 && hops == 0, ok
}

// parseIP reads an address without port or zone, with blanks around it.
func parseIP(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	if s == "" {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(s)
	return a, err == nil && a.Zone() == ""
}

// lastNotTrusted returns the last address of an x-forwarded-for header that is in none of the lists, or else the first; no address
// if one of those that it looks at is none.
func lastNotTrusted(xff string, trusted []netip.Prefix) (found netip.Addr) {
	for xff != "" {
		k := strings.LastIndexByte(xff, ',')
		a, ok := parseIP(xff[k+1:])
		if !ok {
			return netip.Addr{}
		}
		found = a
		if !inAny(trusted, a) || k < 0 {
			return found
		}
		xff = xff[:k]
	}
	return found
}

func inAny(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
