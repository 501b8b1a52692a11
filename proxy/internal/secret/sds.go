package secret

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// SecretType is the type URL of secrets.
const SecretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// Manager holds the static secrets of the bootstrap and the subscriptions to others. owner: main loop.
type Manager struct {
	// Source opens subscriptions; Scope is the root of stats ("sds.<name>.").
	Source sub.Source
	Scope  astats.Scope
	// Wall gives the time of changes, in ns since 1970; nil: they have none.
	Wall func() int64
	// Wait, if set, makes whoever starts wait for one more secret; the result says that it has come, or will not for now.
	Wait func() (came func())

	static map[string]*tlsv3.Secret
	subs   map[string]*sdsSub
}

// AddStatic adds a secret of the bootstrap.
func (m *Manager) AddStatic(s *tlsv3.Secret) error {
	if m.static == nil {
		m.static = map[string]*tlsv3.Secret{}
	}
	if m.static[s.Name] != nil {
		return fmt.Errorf("duplicate static secret name %s", s.Name)
	}
	m.static[s.Name] = s
	return nil
}

// sdsSub is a subscription to one secret.
type sdsSub struct {
	m       *Manager
	version string
	updated int64
	name    string
	current *tlsv3.Secret
	changed []func()
	handle  sub.Subscription
	came    func()
}

// get returns a secret's holder, subscribing on first use.
func (m *Manager) get(c *tlsv3.SdsSecretConfig, changed func()) (*sdsSub, error) {
	if c.GetSdsConfig() == nil {
		s := m.static[c.GetName()]
		if s == nil {
			return nil, fmt.Errorf("Unknown static secret: %s", c.GetName()) //nolint:staticcheck // Envoy's text
		}
		return &sdsSub{name: c.Name, current: s}, nil
	}
	if m.Source == nil {
		return nil, errors.New("sds_config: there is no source of configuration")
	}
	key, err := keyOf(c.GetName(), c.GetSdsConfig())
	if err != nil {
		return nil, err
	}
	s := m.subs[key]
	if s == nil {
		s = &sdsSub{m: m, name: c.GetName(), came: func() {}}
		if m.Wait != nil {
			s.came = m.Wait()
		}
		st := m.Scope.Scope("sds").Scope(c.GetName())
		s.handle, err = m.Source.Subscribe(c.GetSdsConfig(), SecretType, []string{c.GetName()}, sub.Stats{
			Attempt: st.Counter("update_attempt"), Success: st.Counter("update_success"), Failure: st.Counter("update_failure"),
			Rejected: st.Counter("update_rejected"), FetchTimeout: st.Counter("init_fetch_timeout"), Time: st.Gauge("update_time"),
			Version: st.Gauge("version"), VersionText: st.Text("version_text"), Duration: st.Histogram("update_duration", astats.Milliseconds),
		}, s)
		if err != nil {
			return nil, err
		}
		if m.subs == nil {
			m.subs = map[string]*sdsSub{}
		}
		m.subs[key] = s
	}
	s.changed = append(s.changed, changed)
	return s, nil
}

// Dynamic is the state of a subscribed secret; Secret is nil while it has not come.
type Dynamic struct {
	Name, Version string
	Updated       int64
	Secret        *tlsv3.Secret
}

// Dynamic returns all subscribed secrets, sorted by name. They must not be changed.
func (m *Manager) Dynamic() []Dynamic {
	var out []Dynamic
	for _, s := range m.subs {
		out = append(out, Dynamic{Name: s.name, Version: s.version, Updated: s.updated, Secret: s.current})
	}
	slices.SortFunc(out, func(a, b Dynamic) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func keyOf(name string, from *corev3.ConfigSource) (string, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(from)
	return name + "\x00" + string(b), err
}

// Certificate returns what gives the current certificate of a configured secret, nil while it has not come.
func (m *Manager) Certificate(c *tlsv3.SdsSecretConfig, changed func()) (func() *tlsv3.TlsCertificate, error) {
	s, err := m.get(c, changed)
	if err != nil {
		return nil, err
	}
	return func() *tlsv3.TlsCertificate { return s.current.GetTlsCertificate() }, nil
}

// Validation is Certificate for what peers are checked against.
func (m *Manager) Validation(c *tlsv3.SdsSecretConfig, changed func()) (func() *tlsv3.CertificateValidationContext, error) {
	s, err := m.get(c, changed)
	if err != nil {
		return nil, err
	}
	return func() *tlsv3.CertificateValidationContext { return s.current.GetValidationContext() }, nil
}

// OnUpdate takes the secret over, if it can be read, and tells those who use it. A secret that cannot be read leaves the old one.
func (s *sdsSub) OnUpdate(u *sub.Update) error {
	for _, r := range u.Resources {
		if r.Name != s.name || r.Unchanged {
			continue
		}
		x, ok := r.Body.(*tlsv3.Secret)
		if !ok {
			return fmt.Errorf("SDS resource %s is no Secret", r.Name)
		}
		if c := x.GetTlsCertificate(); c != nil {
			if _, err := Certificate(c); err != nil {
				return err
			}
		}
		if v := x.GetValidationContext(); v.GetTrustedCa() != nil {
			if _, err := Roots(v.TrustedCa); err != nil {
				return err
			}
		}
		s.current, s.version = x, u.Version
		if s.m.Wall != nil {
			s.updated = s.m.Wall()
		}
		for _, f := range s.changed {
			f()
		}
	}
	s.came()
	return nil
}

// OnFailure leaves what is there.
func (s *sdsSub) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		s.came()
	}
}
