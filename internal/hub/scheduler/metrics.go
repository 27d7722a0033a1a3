package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// cycles measures scheduling one placement, its writes included.
var cycles = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name:    "scheduling_cycle_duration_milliseconds",
	Help:    "Time to schedule one placement, writes included, in milliseconds.",
	Buckets: []float64{1, 3, 10, 30, 100, 300, 1000, 3000, 10000},
}, []string{"is_failed"})

func init() { metrics.Registry.MustRegister(cycles) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
