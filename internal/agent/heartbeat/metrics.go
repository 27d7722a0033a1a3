package heartbeat

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The public system's agent counts under the same names.
var (
	joins = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "join_result_counter", Help: "How often the cluster has joined the fleet, or could not.",
	}, []string{"result"})
	leaves = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "leave_result_counter", Help: "How often the cluster has left the fleet, or could not.",
	}, []string{"result"})
)

func init() { metrics.Registry.MustRegister(joins, leaves) }

// outcome is a metric's label for how something went.
func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}
