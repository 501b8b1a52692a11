// Package proxy is the data plane as a library: an Envoy v3 bootstrap in, a running proxy out. It changes nothing of the process
// that it runs in: no signals, limits or global state; a program may run several proxies.
package proxy

import (
	"context"
	"net/http"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/server"
)

// Bootstrap is a configuration that was read and whose syntax is right. It can be used for one proxy.
type Bootstrap struct {
	stream  *config.Stream
	unknown *int
	note    func(p Problem) // Check's; nil mostly
}

// Load reads a bootstrap from a file: YAML, JSON, or binary or text protobuf, by its extension. Errors name file, line and column.
func Load(path string) (*Bootstrap, error) { return LoadWith(path, LoadOptions{}) }

// LoadOptions are how to read a bootstrap.
type LoadOptions struct {
	// ConfigYAML is merged over the file, or stands alone if path is empty (--config-yaml).
	ConfigYAML string
	// AllowUnknownFields lets unknown fields pass (--allow-unknown-static-fields).
	AllowUnknownFields bool
	// Env gives the values of variables that replace ${NAME} and ${NAME:-default} in values of YAML and JSON; nil leaves them as they
	// are. A variable that is not set and has no default is an error.
	Env func(name string) (value string, ok bool)
	// OnUnknownField is told of each unknown field that passed, OnDeprecated of each use of a deprecated one: where, and what Envoy
	// says of it. They may be called as late as in New.
	OnUnknownField, OnDeprecated func(text string)
	// MaxProblems bounds how many errors are told, of the clusters, of the listeners, and of the rest each; 0 means 100. The
	// others are counted.
	MaxProblems int
	// Data is what the file holds, if it has been read already, as from a pipe; nil means that it is read. The path is its name then.
	Data []byte

	note func(p Problem) // Check's
}

func (o *LoadOptions) tell(f func(text string), e *config.Error) {
	if f != nil {
		f(e.Error())
	}
	if o.note != nil {
		o.note(*e)
	}
}

// deprecated tells of a deprecated field: a log has Envoy's words.
func (o *LoadOptions) deprecated(e *config.Error, said string) {
	if o.OnDeprecated != nil {
		log := *e
		log.Msg = said
		o.OnDeprecated(log.Error())
	}
	if o.note != nil {
		o.note(*e)
	}
}

// LoadWith is Load with options.
func LoadWith(path string, o LoadOptions) (*Bootstrap, error) {
	unknown := new(int)
	opts := config.Options{ConfigYAML: o.ConfigYAML, AllowUnknownFields: o.AllowUnknownFields, Env: o.Env, Data: o.Data, MaxErrors: o.MaxProblems}
	opts.OnUnknownField = func(e *config.Error) {
		*unknown++
		o.tell(o.OnUnknownField, e)
	}
	if o.note != nil {
		opts.OnRepeated = func(e *config.Error) { o.note(*e) }
	}
	if o.OnDeprecated != nil || o.note != nil {
		opts.OnDeprecated = o.deprecated
	}
	s, err := config.Open(path, opts)
	if err != nil {
		return nil, err
	}
	return &Bootstrap{s, unknown, o.note}, nil
}

// Proxy is a proxy that was built from a bootstrap.
type Proxy struct {
	s *server.Server
	e *embedded
}

// Option changes how a proxy is built.
type Option func(*settings)

// WithExtensions adds extensions to those that the engine has.
func WithExtensions(sets ...ext.Set) Option {
	return func(c *settings) {
		for _, s := range sets {
			c.Extensions.Add(s)
		}
	}
}

// WithConcurrency sets the number of workers; 1 by default.
func WithConcurrency(n int) Option { return func(c *settings) { c.Concurrency = n } }

// WithClock sets the clock.
func WithClock(k clock.Clock) Option { return func(c *settings) { c.Clock = k } }

// WithLog sets where the application log goes; without it there is none.
func WithLog(l *log.Set) Option { return func(c *settings) { c.Log = l } }

// WithIO chooses the I/O driver: "epoll" or "std"; "" is the system's default.
func WithIO(kind string) Option {
	return func(c *settings) {
		c.Driver = func(string) (event.Driver, error) { return event.NewDriver(kind) }
	}
}

// WithOptions sets what the command line would say.
func WithOptions(o Options) Option {
	return func(c *settings) { c.Options = server.Options(o) }
}

// Options are the settings of Envoy's command line that concern a proxy itself. The zero value is Envoy's defaults.
type Options = server.Options

// CommandLine is the part of Options that only /server_info shows.
type CommandLine = server.CommandLine

// New builds a proxy. Nothing listens before Run. An error names the place in the configuration.
func New(b *Bootstrap, opts ...Option) (*Proxy, error) {
	c := settings{Config: server.Config{Boot: b.stream, UnknownFields: func() int { return *b.unknown }, Note: b.note}}
	for _, o := range opts {
		o(&c)
	}
	e, err := c.embed()
	if err != nil {
		return nil, err
	}
	s, err := server.New(c.Config)
	if err != nil {
		e.close()
		return nil, err
	}
	return &Proxy{s, e}, nil
}

// Run serves until ctx ends or the proxy is told to quit. It returns an error if it could not start. Call it once.
func (p *Proxy) Run(ctx context.Context) error {
	p.e.serve()
	defer p.e.close()
	return p.s.Run(ctx)
}

// Reloaded is what became of a bootstrap that was given to Reload.
type Reloaded = server.Reloaded

// Reload makes the static clusters, listeners and secrets those of another bootstrap while the proxy serves: new clusters are warmed
// before listeners change, sockets and connections stay where the new configuration leaves them, and what is gone drains. What else
// differs is in NeedRestart, by name. An error means that nothing was changed. Call it after Ready, once at a time, with a bootstrap
// that Check finds nothing wrong with; ctx ends the waiting only.
func (p *Proxy) Reload(ctx context.Context, b *Bootstrap) (Reloaded, error) {
	done := make(chan Reloaded, 1)
	if err := p.s.Reload(b.stream, func(r Reloaded) { done <- r }); err != nil {
		return Reloaded{}, err
	}
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
		return Reloaded{}, ctx.Err()
	}
}

// ReloadRefused counts a bootstrap that Check or Reload refused in server.dragoman.reload.refused, so that people can be told by a
// stat. Reload counts by itself what it applies. Safe from any goroutine, while Run runs.
func (p *Proxy) ReloadRefused() { p.s.ReloadRefused() }

// Quit makes Run return.
func (p *Proxy) Quit() { p.s.Quit() }

// Ready is closed once the proxy serves.
func (p *Proxy) Ready() <-chan struct{} { return p.s.Ready() }

// Addrs returns the addresses that listeners are bound to, by listener name. Call it after Ready, from any goroutine.
func (p *Proxy) Addrs() map[string][]network.Address { return p.s.Bound() }

// Stats returns all stats in Envoy's text form, no older than now; it waits for the workers at most a second.
func (p *Proxy) Stats() string { return p.s.StatsText() }

// Admin returns the administration interface, for programs that serve it themselves. It works while Run runs.
func (p *Proxy) Admin() http.Handler { return p.s.AdminHandler() }

// ReopenLogs closes and opens the access logs' files, after they were moved away (SIGUSR1). Safe from any goroutine.
func (p *Proxy) ReopenLogs() { p.s.ReopenLogs() }

// Next: proxy/internal/server/worker.go
