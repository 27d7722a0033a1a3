package updaterun

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func TestUpdatingTook(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	started := func(before time.Duration) []metav1.Condition {
		return []metav1.Condition{{Type: placementv1.ConditionStarted, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-before))}}
	}
	stage := func(counts *placementv1.StageClusterCounts, rows ...[]metav1.Condition) *placementv1.StageUpdatingStatus {
		s := &placementv1.StageUpdatingStatus{ClusterCounts: counts, StartTime: ptr.To(metav1.NewTime(now.Add(-time.Hour)))}
		for _, conditions := range rows {
			s.Clusters = append(s.Clusters, placementv1.ClusterUpdatingStatus{Conditions: conditions})
		}
		return s
	}
	under := &placementv1.StageClusterCounts{Total: 2, Succeeded: 1, Updating: 1}
	all := &placementv1.StageClusterCounts{Total: 2, Succeeded: 1, Skipped: 1}
	cases := map[string]struct {
		was, is *placementv1.StageUpdatingStatus
		want    time.Duration
		wantOK  bool
	}{
		"not done":                 {was: stage(under), is: stage(under)},
		"was done before":          {was: stage(all), is: stage(all)},
		"no clusters":              {was: stage(nil), is: stage(nil)},
		"all skipped":              {was: stage(under), is: stage(&placementv1.StageClusterCounts{Total: 2, Skipped: 2})},
		"from the first start":     {was: stage(under), is: stage(all, started(time.Minute), started(2*time.Minute), nil), want: 2 * time.Minute, wantOK: true},
		"rows without conditions":  {was: stage(under), is: stage(all, nil, nil), want: time.Hour, wantOK: true},
		"never came to the stage?": {was: stage(under), is: &placementv1.StageUpdatingStatus{ClusterCounts: all}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, ok := updatingTook(tc.was, tc.is, now); got != tc.want || ok != tc.wantOK {
				t.Errorf("got %s, %t; want %s, %t", got, ok, tc.want, tc.wantOK)
			}
		})
	}
}

// TestMetricLabels keeps names of objects out of metrics: each would be a series for ever.
func TestMetricLabels(t *testing.T) {
	t.Parallel()
	statusChanged.WithLabelValues("k", "s", "c", "st", "r", "none").Set(1)
	approvalLatency.WithLabelValues("k", "beforeStage").Observe(1)
	stageDuration.WithLabelValues("k").Observe(1)
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatalf("gather metrics: %v", err)
	}
	seen := 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "fleet_workload_update_run_") {
			continue
		}
		seen++
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "name" || label.GetName() == "namespace" {
					t.Errorf("%s has label %s", family.GetName(), label.GetName())
				}
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d metrics of update runs, want 3", seen)
	}
}

// TestWhatIsGivenUpIsCounted counts what one write of a status says anew, and nothing twice.
func TestWhatIsGivenUpIsCounted(t *testing.T) {
	t.Parallel()
	kinds := placement.ClusterKinds()
	kinds.UpdateRun = "Counted"
	c := &Controller{Kinds: kinds, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	at := func(failed, skipped int32, answers ...placementv1.ClusterActionResult) *placementv1.ClusterStagedUpdateRun {
		r := &placementv1.ClusterStagedUpdateRun{}
		r.Status.StagesStatus = []placementv1.StageUpdatingStatus{{ClusterCounts: &placementv1.StageClusterCounts{Total: 9, Failed: failed, Skipped: skipped}}}
		for _, result := range answers {
			r.Status.ClusterActions = append(r.Status.ClusterActions, placementv1.ClusterActionStatus{Action: placementv1.ClusterActionRetry, Result: result})
		}
		return r
	}
	steps := []*placementv1.ClusterStagedUpdateRun{at(0, 0), at(2, 1), at(1, 1, "Accepted"), at(2, 1, "Accepted", "Refused")}
	for i := range len(steps) - 1 {
		c.measureRun(steps[i], steps[i+1])
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatalf("gather metrics: %v", err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			if strings.HasPrefix(family.GetName(), "fleetwright_update_run_") && slices.Contains(labels, "Counted") {
				got[strings.Join(labels, " ")] = m.GetCounter().GetValue()
			}
		}
	}
	want := map[string]float64{"failed Counted": 3, "skipped Counted": 1, "Retry Counted Accepted": 1, "Retry Counted Refused": 1}
	for labels, n := range want { // labels come in the order of their names, "how" before "kind" before "result"
		if got[labels] != n {
			t.Errorf("%s: %v, want %v; all: %v", labels, got[labels], n, got)
		}
	}
}

func TestTellCutsLongNotes(t *testing.T) {
	t.Parallel()
	recorder := events.NewFakeRecorder(1)
	c := &Controller{Recorder: recorder}
	c.tell(&placementv1.ClusterStagedUpdateRun{}, []engine.Event{{Type: "Warning", Reason: "R", Message: strings.Repeat("ä%s", 600)}})
	got := <-recorder.Events
	if len(got) > 1024 || !strings.HasPrefix(got, "Warning R ä%sä%s") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func TestStaleErrors(t *testing.T) {
	t.Parallel()
	conflict := fmt.Errorf("write: %w", apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")))
	other := errors.New("no route to host")
	cases := map[string]struct {
		err  error
		want bool
	}{
		"conflict":           {err: conflict, want: true},
		"conflicts":          {err: errors.Join(conflict, nil, fmt.Errorf("update: %w", errGone)), want: true},
		"something else":     {err: other},
		"something else too": {err: errors.Join(conflict, other)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := each(tc.err, isStale); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
