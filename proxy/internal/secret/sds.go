package secret

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
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

	static map[staticKey]*sdsSub // of the bootstrap: holders without a subscription
	subs   map[string]*sdsSub
}

// staticKey is what a static secret is found by: secrets of different kinds may have the same name.
type staticKey struct{ kind, name string }

// The kinds of secrets, by the names that Envoy has for them in its errors.
const (
	kindCertificate = "TlsCertificate"
	kindValidation  = "CertificateValidationContext"
)

func keyOfStatic(s *tlsv3.Secret) staticKey {
	switch s.GetType().(type) {
	case *tlsv3.Secret_TlsCertificate:
		return staticKey{kindCertificate, s.GetName()}
	case *tlsv3.Secret_ValidationContext:
		return staticKey{kindValidation, s.GetName()}
	case *tlsv3.Secret_SessionTicketKeys:
		return staticKey{"TlsSessionTicketKeys", s.GetName()}
	case *tlsv3.Secret_GenericSecret:
		return staticKey{"GenericSecret", s.GetName()}
	}
	return staticKey{}
}

// AddStatic adds a secret of the bootstrap.
func (m *Manager) AddStatic(s *tlsv3.Secret) error {
	key := keyOfStatic(s)
	switch {
	case key.kind == "":
		return errors.New("Secret type not implemented") //nolint:staticcheck // Envoy's text
	case m.static[key] != nil:
		return fmt.Errorf("Duplicate static %s secret name %s", key.kind, key.name) //nolint:staticcheck // Envoy's text
	case m.static == nil:
		m.static = map[staticKey]*sdsSub{}
	}
	m.static[key] = &sdsSub{m: m, name: s.Name, current: s, came: func() {}}
	return nil
}

// UpdateStatic adds or replaces a secret of the bootstrap, when that is read anew, and tells those who use it. One that cannot be read
// leaves the old. changed is false if it is the same as before.
func (m *Manager) UpdateStatic(x *tlsv3.Secret) (changed bool, err error) {
	s := m.static[keyOfStatic(x)]
	if s == nil {
		return true, m.AddStatic(x)
	}
	if proto.Equal(s.current, x) {
		return false, nil
	}
	if err := check(x); err != nil {
		return false, err
	}
	s.take(x, "")
	return true, nil
}

// KeepStatic takes those secrets of the bootstrap away that are not in list. Who uses one keeps it.
func (m *Manager) KeepStatic(list []*tlsv3.Secret) {
	keep := make(map[staticKey]bool, len(list))
	for _, x := range list {
		keep[keyOfStatic(x)] = true
	}
	maps.DeleteFunc(m.static, func(k staticKey, _ *sdsSub) bool { return !keep[k] })
}

// sdsSub is a subscription to one secret.
type sdsSub struct {
	m       *Manager
	version string
	updated int64
	name    string
	kind    string // of a subscription: what is wanted
	current *tlsv3.Secret
	users   []*user
	handle  sub.Subscription
	came    func()
	release func() // of the stats
}

// user is one that uses a secret.
type user struct{ changed func() }

// unknown is the error about a secret that the bootstrap has not, in Envoy's words.
func (m *Manager) unknown(kind, name string) error {
	x := &config.Error{Path: "name", Msg: "Unknown static secret: " + name}
	if kind == kindValidation {
		x.Msg = "Unknown static certificate validation context: " + name
	}
	var names []string
	for k := range m.static {
		switch {
		case k.kind == kind:
			names = append(names, k.name)
		case k.name == name:
			x.Advice = "the static secret of that name is a " + k.kind
		}
	}
	if x.Advice != "" {
		return x
	}
	if x.Among(name, "static secrets", names); x.Suggestion == "" {
		x.Advice = "without an sds_config it is one of static_resources.secrets"
	}
	return x
}

// get returns a secret's holder, subscribing on first use. release gives the use up; the last one ends the subscription.
func (m *Manager) get(kind string, c *tlsv3.SdsSecretConfig, changed func()) (s *sdsSub, release func(), err error) {
	if c.GetSdsConfig() == nil {
		s := m.static[staticKey{kind, c.GetName()}]
		if s == nil {
			return nil, nil, m.unknown(kind, c.GetName())
		}
		u := &user{changed}
		s.users = append(s.users, u)
		return s, func() { s.drop(u) }, nil
	}
	if m.Source == nil {
		return nil, nil, config.At("sds_config", errors.New("there is no source of configuration"))
	}
	key, err := keyOf(kind, c.GetName(), c.GetSdsConfig())
	if err != nil {
		return nil, nil, err
	}
	if s = m.subs[key]; s == nil {
		if s, err = m.subscribe(kind, c, key); err != nil {
			return nil, nil, config.At("sds_config", err)
		}
	}
	u := &user{changed}
	s.users = append(s.users, u)
	return s, func() { m.leave(s, key, u) }, nil
}

func (m *Manager) leave(s *sdsSub, key string, u *user) {
	if !s.drop(u) || len(s.users) > 0 {
		return
	}
	s.handle.Close()
	s.release()
	delete(m.subs, key)
	s.came() // whoever still waits for it need not
}

// drop takes a user out and tells whether it was one.
func (s *sdsSub) drop(u *user) bool {
	i := slices.Index(s.users, u)
	if i >= 0 {
		s.users = slices.Delete(s.users, i, i+1)
	}
	return i >= 0
}

func (m *Manager) subscribe(kind string, c *tlsv3.SdsSecretConfig, key string) (*sdsSub, error) {
	s := &sdsSub{m: m, name: c.GetName(), kind: kind, came: func() {}}
	own := m.Scope.Scope("sds").Scope(c.GetName())
	st, release := sub.NewStats(own)
	own.Group(stats.SDS)
	s.release = func() {
		release()
		own.Release(stats.SDS)
	}
	var err error
	if s.handle, err = m.Source.Subscribe(c.GetSdsConfig(), SecretType, []string{c.GetName()}, st, s); err != nil {
		s.release()
		return nil, err
	}
	if m.Wait != nil {
		s.came = m.Wait()
	}
	if m.subs == nil {
		m.subs = map[string]*sdsSub{}
	}
	m.subs[key] = s
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

func keyOf(kind, name string, from *corev3.ConfigSource) (string, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(from)
	return kind + "\x00" + name + "\x00" + string(b), err
}

// Certificate returns what gives the current certificate of a configured secret, nil while it has not come.
func (m *Manager) Certificate(c *tlsv3.SdsSecretConfig, changed func()) (current func() *tlsv3.TlsCertificate, release func(), err error) {
	s, release, err := m.get(kindCertificate, c, changed)
	if err != nil {
		return nil, nil, err
	}
	return func() *tlsv3.TlsCertificate { return s.current.GetTlsCertificate() }, release, nil
}

// Validation is Certificate for what peers are checked against.
func (m *Manager) Validation(c *tlsv3.SdsSecretConfig, changed func()) (current func() *tlsv3.CertificateValidationContext, release func(), err error) {
	s, release, err := m.get(kindValidation, c, changed)
	if err != nil {
		return nil, nil, err
	}
	return func() *tlsv3.CertificateValidationContext { return s.current.GetValidationContext() }, release, nil
}

// OnUpdate takes the secret over, if it can be read, and tells those who use it. A secret that cannot be read leaves the old one.
func (s *sdsSub) OnUpdate(u *sub.Update) error {
	if len(u.Resources) == 0 {
		s.came() // what is not spoken of stays
		return nil
	}
	r := &u.Resources[0]
	switch {
	case len(u.Resources) > 1:
		return fmt.Errorf("Unexpected SDS secrets length: %d", len(u.Resources)) //nolint:staticcheck // Envoy's text
	case r.Err != nil && r.Name == "":
		return r.Placed(r.Err)
	case r.Name != s.name:
		return r.Placed(config.At("name", fmt.Errorf("Unexpected SDS secret (expecting %s): %s", s.name, r.Name))) //nolint:staticcheck // Envoy's text
	case r.Unchanged:
	case r.Err != nil:
		return r.Named(r.Err)
	default:
		x, ok := r.Body.(*tlsv3.Secret)
		if !ok {
			return fmt.Errorf("SDS resource %s is no Secret", r.Name)
		}
		if err := check(x); err != nil {
			return r.Named(err)
		}
		if kind := keyOfStatic(x).kind; kind != s.kind {
			return r.Named(wrongKind(kind, s.kind))
		}
		s.take(x, u.Version)
	}
	s.came()
	return nil
}

// wrongKind is the error about a secret that is not what those who named it want.
func wrongKind(is, wanted string) error {
	if is == "" {
		return errors.New("the secret has nothing in it: a " + wanted + " is wanted")
	}
	return errors.New("the secret is a " + is + ", and a " + wanted + " is wanted")
}

// check tells whether a secret can be used.
func check(x *tlsv3.Secret) error {
	if c := x.GetTlsCertificate(); c != nil {
		if _, err := Certificate(c); err != nil {
			return config.At("tls_certificate", err)
		}
	}
	if v := x.GetValidationContext(); v.GetTrustedCa() != nil {
		if _, _, err := Roots(v.TrustedCa); err != nil {
			return config.At("validation_context.trusted_ca", err)
		}
	}
	return nil
}

func (s *sdsSub) take(x *tlsv3.Secret, version string) {
	s.current, s.version = x, version
	if s.m.Wall != nil {
		s.updated = s.m.Wall()
	}
	for _, u := range slices.Clone(s.users) {
		u.changed()
	}
}

// OnFailure leaves what is there.
func (s *sdsSub) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		s.came()
	}
}
