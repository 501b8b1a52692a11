package sub

import (
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// NewStats registers the stats of a subscription. release gives them up; nothing counts into them afterwards.
func NewStats(scope apistats.Scope) (s Stats, release func()) {
	g := scope.Group(stats.Subscription)
	return Stats{
			Attempt: g.Counter(stats.SubUpdateAttempt), Success: g.Counter(stats.SubUpdateSuccess), Failure: g.Counter(stats.SubUpdateFailure),
			Rejected: g.Counter(stats.SubUpdateRejected), FetchTimeout: g.Counter(stats.SubInitFetchTimeout), Time: g.Gauge(stats.SubUpdateTime),
			Version: g.Gauge(stats.SubVersion), VersionText: scope.Text(stats.VersionText), Duration: g.Histogram(stats.SubUpdateDuration), Scope: scope,
		}, func() {
			scope.Release(stats.Subscription)
			scope.ReleaseText(stats.VersionText)
		}
}
