package route

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	aroute "github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// Kind is what a route does.
type Kind uint8

// The kinds of routes.
const (
	Forward Kind = iota
	Direct
	Redirect
	// NonForwarding routes are an error on a proxy (404).
	NonForwarding
)

// Entry is a compiled route. It is immutable. The zero value of each option is Envoy's default where that is possible. There may be
// very many, and each request under way keeps one of its time: what most routes do not have is in Extras.
type Entry struct {
	match conditions

	RouteName, VHost string
	Kind             Kind

	// IdleTimeout replaces the HCM's stream idle timeout if HasIdleTimeout.
	HasIdleTimeout bool
	// Hedge is hedge_on_per_try_timeout: a slow attempt goes on beside the next one.
	Hedge bool
	// HighPriority selects the second set of circuit breakers.
	HighPriority    bool
	AutoHostRewrite bool
	AppendXFH       bool // append_x_forwarded_host
	// IncludeAttempts says where x-envoy-attempt-count goes.
	AttemptsInRequest, AttemptsInResponse bool
	// TimeoutRetryHeader tells upstreams of retries whether the last attempt timed out (x-envoy-is-timeout-retry).
	TimeoutRetryHeader bool
	// NewTimeouts: max_stream_duration is set, which also replaces RouteTimeout.
	NewTimeouts bool
	// plain: nothing of it matters any more once an answer has begun; see Rest.
	plain bool

	// Forward: Slot or ClusterHeader is set; neither is an unknown cluster.
	Slot *cluster.Slot
	// NotFoundCode is the answer if the cluster does not exist, 503 by default.
	NotFoundCode int
	// RouteTimeout is the timeout of the whole request, 0 for none (15 s by default).
	RouteTimeout time.Duration
	IdleTimeout  time.Duration

	Retry                           *RetryPolicy
	RequestHeaders, ResponseHeaders *Mutations

	*Extras // never nil
}

// Extras is what few routes have. Routes without any share one that is empty.
type Extras struct {
	ClusterHeader string
	// choose: another entry is taken in place of this one.
	choose chooser
	// refresh is where the entry comes from, if that may be asked again.
	refresh chooser
	// FlushTimeout replaces the idle timeout while the rest of an answer is flushed if HasFlushTimeout, MaxStreamDuration the HCM's if
	// HasMaxStreamDuration.
	FlushTimeout         time.Duration
	HasFlushTimeout      bool
	MaxStreamDuration    time.Duration
	HasMaxStreamDuration bool
	// GRPCTimeoutMax bounds the timeout that grpc-timeout asks for (max_stream_duration.grpc_timeout_header_max or the older
	// max_grpc_timeout); HasGRPCTimeoutMax: it applies at all. 0 means no bound.
	GRPCTimeoutMax    time.Duration
	GRPCTimeoutOffset time.Duration
	HasGRPCTimeoutMax bool

	// Decorator is what requests are called in traces; DecoratorPropagate: others are told.
	Decorator          string
	DecoratorPropagate bool
	// Sampling says how many requests are traced; nil: as the connection manager says.
	Sampling *Sampling

	// RetryBuffer says how bodies are kept for retries; nil: as Envoy does it.
	RetryBuffer *RetryBuffer
	// Redirects are followed as InternalRedirect says; nil: they go to the client.
	InternalRedirect *InternalRedirect
	// Mirrors are the clusters that copies of requests go to.
	Mirrors []Mirror

	// Rewrites of the request. At most one of the path's and one of the host's is set.
	PrefixRewrite     string
	HasPrefixRewrite  bool
	RegexRewrite      *RegexRewrite
	TemplateRewrite   *rewriteTemplate
	PathFormat        *format.Format
	HostRewrite       string
	HostRewriteHeader string
	HostRewritePath   *RegexRewrite
	HostFormat        *format.Format
	// ClusterHeaders and ClusterHost are what a weighted cluster changes in requests, before the route does. Nothing tells of the
	// original host.
	ClusterHeaders *Mutations
	ClusterHost    string

	DirectCode   int
	DirectBody   string
	DirectFormat *format.Format
	DirectType   string
	RedirectTo   *RedirectAction

	// BufferLimit is request_body_buffer_limit (or the older per_request_buffer_limit_bytes); HasBufferLimit: set. With 0, no body is
	// kept for a retry.
	BufferLimit    int
	HasBufferLimit bool

	// Connect ends CONNECT here: the body goes to the upstream as it is; nil: CONNECT is passed on.
	Connect *ConnectConfig
	// Upgrades of the route: name -> enabled.
	Upgrades map[string]bool

	// HashPolicy computes the hash for ring hash and maglev; nil: none.
	HashPolicy *HashPolicy

	rateLimits, hostRateLimits []aroute.RateLimit
	includeHostRateLimits      bool

	virtualClusters []virtualCluster
	// RouteCounters are of a stat_prefix; nil: none.
	RouteCounters *Counters

	metadata map[string]map[string]any
	hostMeta map[string]map[string]any // of the virtual host
	filters  map[string]*filterConfig
	disabled map[string]bool // filter name -> disabled
}

var noExtras Extras // read only

// NoExtras is the Extras of an Entry that is made by hand.
func NoExtras() *Extras { return &noExtras }

// extras returns an empty Extras to fill.
func (c *compiler) extras() *Extras {
	x := c.spare
	if c.spare = nil; x == nil {
		x = &Extras{}
	}
	return x
}

// settle shares the Extras of routes that have none; what was filled with nothing is for the next route.
func (c *compiler) settle(e *Entry) {
	if reflect.ValueOf(e.Extras).Elem().IsZero() {
		c.spare, e.Extras = e.Extras, &noExtras
		e.plain = !e.HighPriority // by which the breakers of its request are known
	}
}

// rest is what plain routes are when an answer has begun; read only.
var rest = Entry{NotFoundCode: 503, Extras: &noExtras, plain: true}

// Rest returns what a stream whose answer has begun, and which has no filters that might ask, needs of its route: that, or for routes
// of which nothing is left to be done, one that all share. So a long stream does not hold on to a route of a configuration that is over.
func (e *Entry) Rest() *Entry {
	if e.plain {
		return &rest
	}
	return e
}

// clone returns a copy that may be changed.
func (e *Entry) clone() *Entry {
	one, x := *e, *e.Extras
	one.Extras, one.plain = &x, false
	return &one
}

// ConnectConfig is connect_config.
type ConnectConfig struct {
	// AllowPost treats POST as CONNECT.
	AllowPost bool
}

// Name returns the route's name.
func (e *Entry) Name() string { return e.RouteName }

// VirtualHost returns the virtual host's name.
func (e *Entry) VirtualHost() string { return e.VHost }

// Cluster returns the name of the cluster, "" if there is none or it is chosen by a header.
func (e *Entry) Cluster() string {
	if e.Slot != nil {
		return e.Slot.Name()
	}
	return ""
}

// Timeout returns the route's timeout, 0 for none.
func (e *Entry) Timeout() time.Duration { return e.RouteTimeout }

// Metadata returns the route's metadata of a namespace.
func (e *Entry) Metadata(namespace string) map[string]any { return e.metadata[namespace] }

// HostMetadata returns the virtual host's metadata of a namespace.
func (e *Entry) HostMetadata(namespace string) map[string]any { return e.hostMeta[namespace] }

// FilterConfig returns the most specific configuration for a filter.
func (e *Entry) FilterConfig(name string) any {
	if c := e.filters[name]; c != nil {
		return c.value
	}
	return nil
}

// FilterConfigs appends all configurations for a filter to dst, the most specific one first.
func (e *Entry) FilterConfigs(dst []any, name string) []any {
	for c := e.filters[name]; c != nil; c = c.less {
		dst = append(dst, c.value)
	}
	return dst
}

// filterConfig is a filter's configuration on one level, and those that are less specific.
type filterConfig struct {
	value any
	less  *filterConfig
}

// FilterDisabled tells what the route says about a filter.
func (e *Entry) FilterDisabled(name string) (disabled, set bool) {
	disabled, set = e.disabled[name]
	return disabled, set
}

func (e *Entry) setDisabled(filter string, off bool) {
	if e.disabled == nil {
		e.disabled = map[string]bool{}
	}
	e.disabled[filter] = off
}

// resolve chooses an entry, if there is a choice.
// Refreshed is the entry that a route's cluster specifier gives for a request as it is now, nil if the specifier is of a kind that
// is asked only once.
func (e *Entry) Refreshed(r *Request) *Entry {
	if e.refresh == nil {
		return nil
	}
	return e.refresh.pick(r)
}

func (e *Entry) resolve(r *Request) *Entry {
	if e.choose != nil {
		return e.choose.pick(r)
	}
	return e
}

// RetryOn is a set of retry conditions.
type RetryOn uint32

// Envoy's retry conditions, HTTP and gRPC.
const (
	Retry5xx RetryOn = 1 << iota
	RetryGatewayError
	RetryConnectFailure
	RetryEnvoyRatelimited
	RetryRefusedStream
	RetryRetriable4xx
	RetryRetriableStatusCodes
	RetryRetriableHeaders
	RetryReset
	RetryResetBeforeRequest
	RetryHTTP3PostConnectFailure
	RetryGRPCCancelled
	RetryGRPCDeadlineExceeded
	RetryGRPCInternal
	RetryGRPCResourceExhausted
	RetryGRPCUnavailable
)

var retryNames = map[string]RetryOn{
	"5xx": Retry5xx, "gateway-error": RetryGatewayError, "connect-failure": RetryConnectFailure,
	"envoy-ratelimited": RetryEnvoyRatelimited, "refused-stream": RetryRefusedStream, "retriable-4xx": RetryRetriable4xx,
	"retriable-status-codes": RetryRetriableStatusCodes, "retriable-headers": RetryRetriableHeaders, "reset": RetryReset,
	"reset-before-request": RetryResetBeforeRequest, "http3-post-connect-failure": RetryHTTP3PostConnectFailure,
}

var retryGRPCNames = map[string]RetryOn{
	"cancelled": RetryGRPCCancelled, "deadline-exceeded": RetryGRPCDeadlineExceeded, "internal": RetryGRPCInternal,
	"resource-exhausted": RetryGRPCResourceExhausted, "unavailable": RetryGRPCUnavailable,
}

// ParseRetryOn reads a comma-separated list of HTTP's conditions. Unknown words are ignored, as Envoy does.
func ParseRetryOn(s string) RetryOn { return parseConditions(s, retryNames) }

// ParseRetryGRPCOn is ParseRetryOn for gRPC's conditions.
func ParseRetryGRPCOn(s string) RetryOn { return parseConditions(s, retryGRPCNames) }

// RetryWords are all conditions of both lists, by name.
func RetryWords() []string {
	return append(slices.Sorted(maps.Keys(retryNames)), slices.Sorted(maps.Keys(retryGRPCNames))...)
}

func parseConditions(s string, names map[string]RetryOn) (on RetryOn) {
	for s != "" {
		word := s
		if i := indexComma(s); i >= 0 {
			word, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		on |= names[trim(word)]
	}
	return on
}

func indexComma(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == ',' {
			return i
		}
	}
	return -1
}

func trim(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// HeaderMatch is one header matcher.
type HeaderMatch interface{ Match(h *http.HeaderMap) bool }
