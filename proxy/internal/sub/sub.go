// Package sub is how the engine's parts get configuration that changes: a subscription to named resources of one type, what an
// update says, and the answer to it. It holds interfaces and plain values only; files, gRPC and tests implement them, clusters,
// routes, secrets and listeners consume them. Everything in it belongs to the main loop.
package sub

import (
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Resource is one named resource of an update.
type Resource struct {
	Name    string
	Version string
	// Body is nil if Unchanged.
	Body proto.Message
	// Unchanged: the resource is the same as in the last update that was applied; it is named so that it is not taken for removed.
	Unchanged bool
	// TTL ends the resource if no update comes in time; 0: never.
	TTL time.Duration
	// Packed is the resource serialized and compressed (config.Compress), for those who keep it for /config_dump; nil if it is small.
	Packed []byte
	// Err says why the resource could not be read; Body is nil then. It is for the consumer to name among what it refuses.
	Err error
	// Placer knows where the resource stands, nil if that has no name but its own; Index is for the Placer only.
	Placer Placer
	Index  int
}

// Placer gives errors about resources their place: in a file, with line and column. Those that have a file already stay as they are.
type Placer interface {
	Place(r *Resource, err error) error
}

// Placed returns an error about the resource, the paths in which begin at it, with its place, as far as that is known. It is for
// consumers that name the resource themselves.
func (r *Resource) Placed(err error) error {
	if err == nil || r.Placer == nil {
		return err
	}
	return r.Placer.Place(r, err)
}

// Named is Placed for consumers that do not name the resource: what has no place in a file gets its name.
func (r *Resource) Named(err error) error {
	if err == nil || r.Placer != nil || r.Name == "" {
		return r.Placed(err)
	}
	return config.At("resources["+strconv.Quote(r.Name)+"]", err)
}

// Update is what a source says at one moment.
type Update struct {
	// Version names the whole update (version_info).
	Version string
	// Full: Resources are all that there is of the type (state of the world); otherwise they are changes, and Removed is what
	// is no more.
	Full      bool
	Resources []Resource
	Removed   []string
	// Same counts resources that the source has, that did not change, and that are not in Resources.
	Same int
}

// Changes returns the names that the update takes away from those that a consumer has, and, of a full update, the names that it
// holds, each false: a consumer sets it when it has come, to tell a name that comes twice. seen of other updates is nil.
func (u *Update) Changes(has map[string]bool) (seen map[string]bool, removed []string) {
	if !u.Full {
		return nil, u.Removed
	}
	seen = make(map[string]bool, len(u.Resources))
	for i := range u.Resources {
		seen[u.Resources[i].Name] = false
	}
	for n := range has {
		if _, ok := seen[n]; !ok {
			removed = append(removed, n)
		}
	}
	slices.Sort(removed)
	return seen, removed
}

// Reason says why there is no update.
type Reason uint8

// The reasons.
const (
	// ConnectionFailure: the source cannot be reached.
	ConnectionFailure Reason = iota
	// FetchTimeout: initial_fetch_timeout is over. Consumers go on without.
	FetchTimeout
	// Rejected: the update could not be read at all.
	Rejected
)

// Callbacks consume updates. They are called on the main loop, never from within Subscribe, and do not keep the update.
type Callbacks interface {
	// OnUpdate applies an update. A nil error is the ACK. An error is the NACK, and its text is what the source is told; what was
	// good in the update stays applied.
	OnUpdate(u *Update) error
	// OnFailure tells that there is no update for now, and why.
	OnFailure(reason Reason, err error)
}

// Stepper is a Callbacks that takes large updates in small steps, so that the main loop can do other things in between. The source
// calls OnUpdate or Begin, as it likes.
type Stepper interface {
	Callbacks
	// Begin begins to apply an update. The caller calls step until more is false: each call applies one thing, completely. refused
	// is the resource of the update (by index) that this step could not take, -1 if there is none; finish gives what OnUpdate
	// would have returned, after the last step. A subscription that is closed in between is not asked any further.
	Begin(u *Update) (step func() (refused int, more bool), finish func() error)
}

// Apply applies an update in one go. It is the OnUpdate of a Stepper.
func Apply(s Stepper, u *Update) error {
	step, finish := s.Begin(u)
	for more := true; more; {
		_, more = step()
	}
	return finish()
}

// Subscription is an open subscription.
type Subscription interface {
	// SetNames replaces the names that are wanted; none means all (wildcard), for types that know it.
	SetNames(names []string)
	// Close ends it. No callback comes after it.
	Close()
}

// Source opens subscriptions.
type Source interface {
	// Subscribe asks for resources of a type. The error says that the config source cannot be used at all.
	Subscribe(from *corev3.ConfigSource, typeURL string, names []string, stats Stats, cb Callbacks) (Subscription, error)
}

// Stats is where a source counts for one subscription. Zero ids count into nothing.
type Stats struct {
	Attempt, Success, Failure, Rejected, FetchTimeout apistats.CounterID
	// Time is when the last update was applied, in ms since 1970; Version the hash of the last version; VersionText itself.
	Time, Version apistats.GaugeID
	VersionText   apistats.TextID
	// Duration is how long updates took to apply, in ms.
	Duration apistats.HistogramID
	// Scope is where these are: a source that has a stream of its own for the subscription counts there too. nil: nowhere.
	Scope apistats.Scope
}

// Checker is a source that can tell, before anything is opened, whether resources of a type can be had.
type Checker interface {
	Check(from *corev3.ConfigSource, typeURL string) error
}
