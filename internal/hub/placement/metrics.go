package placement

import (
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	model "github.com/fleetwright/fleetwright/internal/placement"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// since tells of each placement, in one series, since when it has been at the first condition that is not true, or
// complete. The series goes with the placement.
var since = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "fleet_workload_placement_status_last_timestamp_seconds",
	Help: "When the placement came to the first of its conditions that is not true, or was completed.",
}, []string{"namespace", "name", "conditionType", "status", "reason"})

func init() { metrics.Registry.MustRegister(since) }

// measure sets the placement's series.
func (c *Controller) measure(key model.Key, status *placementv1.PlacementStatus) {
	prefix := c.Kinds.ConditionPrefix
	steps := slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool {
		return c.Type == prefix+placementv1.ConditionStatusSynced // no step of the placement's way
	})
	if len(steps) == 0 {
		return
	}
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	last := steps[len(steps)-1]
	kind, state, reason := last.Type, string(last.Status), last.Reason
	if kind == c.Kinds.ConditionPrefix+placementv1.ConditionAvailable && state == "True" {
		kind, reason = "Completed", "Completed"
	}
	since.DeletePartialMatch(labels)
	since.WithLabelValues(key.Namespace, key.Name, kind, state, reason).Set(float64(last.LastTransitionTime.Unix()))
}

func (c *Controller) unmeasure(key model.Key) {
	since.DeletePartialMatch(prometheus.Labels{"namespace": key.Namespace, "name": key.Name})
}
