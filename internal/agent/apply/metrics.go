package apply

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	driftRepairs = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetwright_agent_drift_repairs_total",
		Help: "Objects that were changed or deleted in the member and made as placed again, by kind.",
	}, []string{"group", "kind"})
	orphans = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fleetwright_agent_orphaned_appliedworks",
		Help: "AppliedWorks in the member whose Work the hub does not have. What they own stays as it is.",
	})
)

func init() { metrics.Registry.MustRegister(driftRepairs, orphans) }

// orphan takes note of whether an AppliedWork has lost its Work, and tells whether that is new.
func (a *Applier) orphan(name string, is bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.orphaned[name]
	if is {
		a.orphaned[name] = true
	} else {
		delete(a.orphaned, name)
	}
	orphans.Set(float64(len(a.orphaned)))
	return is && !was
}
