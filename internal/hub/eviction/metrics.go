package eviction

import (
	"strconv"

	"github.com/fleetwright/fleetwright/internal/rollout/eviction"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// None has a name of an eviction, a placement or a cluster among its labels: their values stay few.
var (
	finished = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetwright_evictions_total",
		Help: "Evictions that were dealt with, by result (Executed, Blocked or Invalid) and, of those that were blocked, by what: " +
			"minAvailable or maxUnavailable of the disruption budget, misconfiguredBudget, or nothingPlaced.",
	}, []string{"result", "by"})
	// answered is the public system's metric.
	answered = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fleet_workload_eviction_complete",
		Help: "When any eviction was last answered like this, in seconds since 1970.",
	}, []string{"isCompleted", "isValid"})
)

func init() { metrics.Registry.MustRegister(finished, answered) }

// measure notes an answer that is stored.
func (c *Controller) measure(o eviction.Outcome) {
	completed := o.Result != ""
	answered.WithLabelValues(strconv.FormatBool(completed), strconv.FormatBool(o.Result != eviction.Invalid)).Set(float64(c.Clock.Now().Unix()))
	if completed {
		finished.WithLabelValues(string(o.Result), string(o.Block)).Inc()
	}
}
