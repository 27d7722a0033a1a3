package updaterun

import (
	"context"
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// The public system's metrics, with labels whose values are few: no names of runs or namespaces.
var (
	statusChanged = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fleet_workload_update_run_status_last_timestamp_seconds",
		Help: "When a condition of any update run was last changed to this status and reason, in seconds since 1970.",
	}, []string{"kind", "state", "condition", "status", "reason", "failureType"})
	approvalLatency = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fleet_workload_update_run_approval_request_latency_seconds",
		Help:    "Time from asking for an approval to accepting it, in seconds.",
		Buckets: []float64{60, 300, 900, 1800, 3600, 7200, 21600, 43200, 86400},
	}, []string{"kind", "taskType"})
	stageDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "fleet_workload_update_run_stage_cluster_updating_duration_seconds",
		Help:    "Time from the start of a stage's first cluster until all of its clusters are done, in seconds.",
		Buckets: []float64{1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600},
	}, []string{"kind"})
	clustersGivenUp = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetwright_update_run_clusters_given_up_total",
		Help: "Clusters that update runs went on without or ended because of, by how: failed (not done at the progressDeadline) or skipped.",
	}, []string{"kind", "how"})
	actionsAnswered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleetwright_update_run_cluster_actions_total",
		Help: "What people asked of update runs about single clusters, by action (Skip or Retry) and result (Accepted or Refused).",
	}, []string{"kind", "action", "result"})
)

func init() {
	metrics.Registry.MustRegister(statusChanged, approvalLatency, stageDuration, clustersGivenUp, actionsAnswered)
}

// measureApproval notes how long an accepted request was open.
func (c *Controller) measureApproval(request placementv1.ApprovalRequestObject) {
	if meta.IsStatusConditionTrue(request.ApprovalRequestStatus().Conditions, placementv1.ConditionApprovalAccepted) {
		approvalLatency.WithLabelValues(c.Kinds.UpdateRun, request.GetLabels()[placementv1.LabelTaskType]).
			Observe(c.Clock.Since(request.GetCreationTimestamp().Time).Seconds())
	}
}

// measureRun notes what a status write has changed.
func (c *Controller) measureRun(before, after placementv1.UpdateRunObject) {
	for _, is := range after.UpdateRunStatus().Conditions {
		was := meta.FindStatusCondition(before.UpdateRunStatus().Conditions, is.Type)
		if was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		failure := "none"
		if is.Reason == placementv1.ReasonUpdateRunFailed || is.Reason == placementv1.ReasonUpdateRunInitializationFailed {
			failure = "user_error"
		}
		statusChanged.WithLabelValues(c.Kinds.UpdateRun, string(after.UpdateRunSpec().State), is.Type, string(is.Status), is.Reason, failure).
			Set(float64(c.Clock.Now().UnixMilli()) / 1000)
	}
	for i := range min(len(before.UpdateRunStatus().StagesStatus), len(after.UpdateRunStatus().StagesStatus)) {
		was, is := &before.UpdateRunStatus().StagesStatus[i], &after.UpdateRunStatus().StagesStatus[i]
		if took, ok := updatingTook(was, is, c.Clock.Now()); ok {
			stageDuration.WithLabelValues(c.Kinds.UpdateRun).Observe(took.Seconds())
		}
		if was.ClusterCounts != nil && is.ClusterCounts != nil {
			clustersGivenUp.WithLabelValues(c.Kinds.UpdateRun, "failed").Add(float64(max(is.ClusterCounts.Failed-was.ClusterCounts.Failed, 0)))
			clustersGivenUp.WithLabelValues(c.Kinds.UpdateRun, "skipped").Add(float64(max(is.ClusterCounts.Skipped-was.ClusterCounts.Skipped, 0)))
		}
	}
	answered := after.UpdateRunStatus().ClusterActions
	for _, a := range answered[min(len(before.UpdateRunStatus().ClusterActions), len(answered)):] {
		actionsAnswered.WithLabelValues(c.Kinds.UpdateRun, string(a.Action), string(a.Result)).Inc()
	}
}

// updatingTook is how long the clusters of a stage took, if the last of them has just become done.
func updatingTook(was, is *placementv1.StageUpdatingStatus, now time.Time) (time.Duration, bool) {
	updated := func(s *placementv1.StageUpdatingStatus) bool {
		return s.ClusterCounts != nil && s.ClusterCounts.Succeeded > 0 &&
			s.ClusterCounts.Succeeded+s.ClusterCounts.Skipped+s.ClusterCounts.Failed == s.ClusterCounts.Total
	}
	if updated(was) || !updated(is) {
		return 0, false
	}
	var first *metav1.Time
	for i := range is.Clusters {
		started := meta.FindStatusCondition(is.Clusters[i].Conditions, placementv1.ConditionStarted)
		if started != nil && (first == nil || started.LastTransitionTime.Before(first)) {
			first = &started.LastTransitionTime
		}
	}
	if first == nil {
		first = is.StartTime
	}
	if first == nil {
		return 0, false
	}
	return now.Sub(first.Time), true
}

// runCounter counts, when asked, the unfinished runs of a kind by what they are at.
type runCounter struct {
	reader client.Reader
	kinds  *placement.Kinds
	desc   *prometheus.Desc
}

// registerRunCounter registers the counter of a scope's runs. A later one of the same scope takes its place.
func registerRunCounter(reader client.Reader, kinds *placement.Kinds) error {
	counter := &runCounter{reader: reader, kinds: kinds, desc: prometheus.NewDesc("fleetwright_update_runs",
		"Unfinished update runs, by the reason of their Progressing condition, or of Initialized before that.",
		[]string{"reason"}, prometheus.Labels{"kind": kinds.UpdateRun})}
	metrics.Registry.Unregister(counter)
	if err := metrics.Registry.Register(counter); err != nil {
		return fmt.Errorf("register the counter of %s objects: %w", kinds.UpdateRun, err)
	}
	return nil
}

// Describe is part of prometheus.Collector.
func (r *runCounter) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- r.desc }

// Collect is part of prometheus.Collector.
func (r *runCounter) Collect(values chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	runs, err := listing.UpdateRuns(ctx, r.reader, r.kinds, client.MatchingFields{indexUnfinished: "true"}, listing.Shared)
	if err != nil {
		log.Log.WithName("updaterun").V(1).Info("Update runs cannot be counted yet", "reason", err.Error())
		return
	}
	reasons := map[string]int{}
	for _, run := range runs {
		reasons[reasonOf(run.UpdateRunStatus())]++
	}
	for reason, n := range reasons {
		values <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(n), reason)
	}
}

// reasonOf says in one word what an unfinished run is at.
func reasonOf(status *placementv1.UpdateRunStatus) string {
	initialized := meta.FindStatusCondition(status.Conditions, placementv1.ConditionInitialized)
	switch progressing := meta.FindStatusCondition(status.Conditions, placementv1.ConditionProgressing); {
	case initialized == nil:
		return "New"
	case initialized.Status == metav1.ConditionTrue && progressing != nil:
		return progressing.Reason
	default:
		return initialized.Reason
	}
}
