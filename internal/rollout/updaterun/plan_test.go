package updaterun

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestMakePlan(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		// change spoils an input that could be planned; the input may be changed freely.
		change      func(*PlanInput)
		wantVerdict Verdict
		wantMessage string // a part of it
	}{
		"all is there":                      {change: func(*PlanInput) {}, wantVerdict: Planned},
		"the snapshot is not asked for yet": {change: func(in *PlanInput) { in.Snapshot = nil }, wantVerdict: NeedsSnapshot},
		"no placement": {
			change:      func(in *PlanInput) { in.Placement = nil },
			wantMessage: `ClusterResourcePlacement "web" does not exist; create it`,
		},
		"placement being deleted": {
			change:      func(in *PlanInput) { in.Placement.SetDeletionTimestamp(ptr.To(metav1.Now())) },
			wantMessage: `ClusterResourcePlacement "web" is being deleted`,
		},
		"placement and strategy missing are both told": {
			change:      func(in *PlanInput) { in.Placement, in.Strategy = nil, nil },
			wantMessage: `"web" does not exist; create it, and the run goes on; ClusterStagedUpdateStrategy "example" does not exist`,
		},
		"placement not External": {
			change: func(in *PlanInput) {
				in.Placement.PlacementSpec().Strategy.Type = placementv1.RollingUpdateRolloutStrategyType
			},
			wantVerdict: Failed, wantMessage: "set its spec.strategy.type to External",
		},
		"no policy snapshot": {
			change:      func(in *PlanInput) { in.Policies = nil },
			wantMessage: "has no policy snapshot",
		},
		"policy snapshot of an earlier placement of the name": {
			change:      func(in *PlanInput) { in.Policies[0].SetAnnotations(nil) },
			wantMessage: "has no policy snapshot",
		},
		"policy snapshot not answered": {
			change:      func(in *PlanInput) { in.Policies[0].PolicySnapshotStatus().Conditions = nil },
			wantMessage: "generation 1, is not finished",
		},
		"placement changed since it was scheduled": {
			change:      func(in *PlanInput) { in.Placement.SetGeneration(2) },
			wantMessage: "generation 2, is not finished",
		},
		"scheduler says why not": {
			change: func(in *PlanInput) {
				c := &in.Policies[0].PolicySnapshotStatus().Conditions[0]
				c.Status, c.Message = metav1.ConditionUnknown, "waiting: binding x is still being deleted"
			},
			wantMessage: "is not finished: waiting: binding x is still being deleted",
		},
		"binding of an older policy": {
			change:      func(in *PlanInput) { in.Bindings[1].BindingSpec().SchedulingPolicySnapshotName = "web-older" },
			wantMessage: `cluster "member2" was chosen by policy snapshot "web-older"`,
		},
		"binding missing": {
			change:      func(in *PlanInput) { in.Bindings = in.Bindings[1:] },
			wantMessage: "3 clusters were chosen and 2 have bindings",
		},
		"chosen cluster is leaving": {
			change: func(in *PlanInput) {
				in.Fleet = schedule.NewFleet([]schedule.Cluster{{Name: "member1", Leaving: true}})
			},
			wantMessage: `cluster "member1" was chosen and is leaving`,
		},
		"no clusters at all": {
			change: func(in *PlanInput) {
				in.Bindings = nil
				in.Policies[0].PolicySnapshotStatus().SelectedCount = 0
			},
			wantMessage: "has no clusters yet; the run goes on when clusters that its policy chooses have joined",
		},
		"no clusters are asked for, by number": {
			change: func(in *PlanInput) {
				in.Bindings = nil
				in.Policies[0].PolicySnapshotStatus().SelectedCount = 0
				in.Placement.PlacementSpec().Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](0)}
			},
			wantMessage: `ClusterResourcePlacement "web" asks for no clusters: its policy is PickN with numberOfClusters 0; the run goes on when that is raised`,
		},
		"no clusters are asked for, by name": {
			change: func(in *PlanInput) {
				in.Bindings = nil
				in.Policies[0].PolicySnapshotStatus().SelectedCount = 0
				in.Placement.PlacementSpec().Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickFixedPlacementType}
			},
			wantMessage: `ClusterResourcePlacement "web" asks for no clusters: its policy is PickFixed with no clusterNames; the run goes on when some are named`,
		},
		"no strategy": {
			change:      func(in *PlanInput) { in.Strategy = nil },
			wantMessage: `ClusterStagedUpdateStrategy "example" does not exist`,
		},
		"index is no number": {
			change:      func(in *PlanInput) { in.Run.UpdateRunSpec().ResourceSnapshotIndex = "latest" },
			wantVerdict: Failed, wantMessage: `invalid resource snapshot index "latest"`,
		},
		"snapshot refused": {
			change:      func(in *PlanInput) { in.Snapshot = &Snapshot{Refused: "no such snapshot"} },
			wantVerdict: Failed, wantMessage: "no such snapshot",
		},
		"snapshot not there yet": {
			change:      func(in *PlanInput) { in.Snapshot = &Snapshot{Missing: "the selection could not be read"} },
			wantMessage: "the selection could not be read",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := seedFleet(t)
			w := s.world()
			in := PlanInput{
				Kinds: s.kinds, Run: s.create("example-run", "example", "0", run), Placement: w.Placement, Strategy: s.strategies["example"],
				Policies: []placementv1.PolicySnapshotObject{s.policy}, Bindings: w.Bindings, Fleet: w.Fleet, Snapshot: &Snapshot{Index: 0},
			}
			tc.change(&in)
			got := MakePlan(in)
			if got.Verdict != tc.wantVerdict || !strings.Contains(got.Message, tc.wantMessage) {
				t.Errorf("got verdict %d, %q\nwant verdict %d, with %q", got.Verdict, got.Message, tc.wantVerdict, tc.wantMessage)
			}
		})
	}
}

// TestPlanAsPrinted compares a plan with what the first seed prints.
func TestPlanAsPrinted(t *testing.T) {
	t.Parallel()
	s := seedFleet(t)
	s.create("example-run", "example", "0", initialize)
	s.settle()
	r := s.runs["example-run"]
	r.Status.Conditions, r.Status.StagedUpdateStrategySnapshot = nil, nil
	got, err := json.MarshalIndent(r.Status, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "policySnapshotIndexUsed": "0",
  "placementUID": "uid-1",
  "policyObservedClusterCount": 3,
  "resourceSnapshotIndexUsed": "0",
  "stagesStatus": [
    {
      "stageName": "staging",
      "clusters": [
        {
          "clusterName": "member2"
        }
      ],
      "clusterCounts": {
        "total": 1,
        "succeeded": 0,
        "updating": 0,
        "failing": 0,
        "skipped": 0
      },
      "afterStageTaskStatus": [
        {
          "type": "TimedWait"
        }
      ]
    },
    {
      "stageName": "canary",
      "clusters": [
        {
          "clusterName": "member3"
        },
        {
          "clusterName": "member1"
        }
      ],
      "clusterCounts": {
        "total": 2,
        "succeeded": 0,
        "updating": 0,
        "failing": 0,
        "skipped": 0
      },
      "beforeStageTaskStatus": [
        {
          "type": "Approval",
          "approvalRequestName": "example-run-before-canary"
        }
      ]
    }
  ],
  "deletionStageStatus": {
    "stageName": "kubernetes-fleet.io/deleteStage",
    "clusters": []
  }
}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("the plan (-want +got):\n%s", diff)
	}
}

func TestDivide(t *testing.T) {
	t.Parallel()
	everything := &metav1.LabelSelector{}
	approval := placementv1.StageTask{Type: placementv1.StageTaskTypeApproval}
	wait := func(d time.Duration) placementv1.StageTask {
		return placementv1.StageTask{Type: placementv1.StageTaskTypeTimedWait, WaitTime: &metav1.Duration{Duration: d}}
	}
	cases := map[string]struct {
		stages  []placementv1.StageConfig
		labels  map[string]map[string]string // of clusters
		want    map[string]string            // stage → clusters in order
		wantErr string
	}{
		"by name": {
			stages: []placementv1.StageConfig{{Name: "all", LabelSelector: everything}},
			labels: map[string]map[string]string{"b": nil, "c": nil, "a": nil},
			want:   map[string]string{"all": "a b c"},
		},
		"by label, as a number, equal ones by name, those without it last": {
			stages: []placementv1.StageConfig{{Name: "all", LabelSelector: everything, SortingLabelKey: ptr.To("order")}},
			labels: map[string]map[string]string{"a": nil, "b": {"order": "10"}, "c": {"order": "9"}, "d": {"order": "-1"}, "e": {"order": "9"}, "0": {"other": "1"}},
			want:   map[string]string{"all": "d c e b 0 a"},
		},
		"label that is no integer": {
			stages:  []placementv1.StageConfig{{Name: "all", LabelSelector: everything, SortingLabelKey: ptr.To("order")}},
			labels:  map[string]map[string]string{"a": {"order": "first"}},
			wantErr: `stage "all": label order="first" of cluster "a" is not an integer`,
		},
		"empty label is no integer": {
			stages:  []placementv1.StageConfig{{Name: "all", LabelSelector: everything, SortingLabelKey: ptr.To("order")}},
			labels:  map[string]map[string]string{"a": {"order": ""}},
			wantErr: `label order="" of cluster "a" is not an integer`,
		},
		"a stage without selector has no clusters": {
			stages: []placementv1.StageConfig{{Name: "none"}, {Name: "all", LabelSelector: everything}},
			labels: map[string]map[string]string{"a": nil},
			want:   map[string]string{"none": "", "all": "a"},
		},
		"a cluster in two stages": {
			stages:  []placementv1.StageConfig{{Name: "one", LabelSelector: everything}, {Name: "two", LabelSelector: everything}},
			labels:  map[string]map[string]string{"a": nil},
			wantErr: `cluster "a" is in the stages "one" and "two"`,
		},
		"clusters in no stage": {
			stages: []placementv1.StageConfig{environment("canary")},
			labels: map[string]map[string]string{"a": {"environment": "canary"}, "z": nil, "l": nil, "k": nil, "j": nil, "i": nil, "h": nil, "g": nil, "f": nil,
				"e": nil, "d": nil, "c": nil},
			wantErr: "some clusters are not placed in any stage, total 11, showing up to 10: c, d, e, f, g, h, i, j, k, l; add a stage",
		},
		"invalid selector": {
			stages:  []placementv1.StageConfig{{Name: "one", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}},
			wantErr: `stage "one": its label selector is invalid`,
		},
		"no stages":       {wantErr: "it has no stages"},
		"duplicate names": {stages: []placementv1.StageConfig{{Name: "one"}, {Name: "one"}}, wantErr: `two stages are named "one"`},
		"two before tasks": {
			stages:  []placementv1.StageConfig{{Name: "one", BeforeStageTasks: []placementv1.StageTask{approval, approval}}},
			wantErr: "beforeStageTasks can have at most one task",
		},
		"wait before": {
			stages:  []placementv1.StageConfig{{Name: "one", BeforeStageTasks: []placementv1.StageTask{wait(time.Second)}}},
			wantErr: "only Approval is allowed there",
		},
		"two waits after": {
			stages:  []placementv1.StageConfig{{Name: "one", AfterStageTasks: []placementv1.StageTask{wait(1), wait(2)}}},
			wantErr: "two tasks of the same type: TimedWait",
		},
		"wait of nothing": {
			stages:  []placementv1.StageConfig{{Name: "one", AfterStageTasks: []placementv1.StageTask{wait(0)}}},
			wantErr: "needs a waitTime of more than zero",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var clusters []*schedule.Cluster
			for name, labels := range tc.labels {
				clusters = append(clusters, &schedule.Cluster{Name: name, Labels: labels})
			}
			stages, err := divide("example-run", &placementv1.UpdateStrategySpec{Stages: tc.stages}, clusters)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("got error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			got := map[string]string{}
			for _, stage := range stages {
				var names []string
				for _, c := range stage.Clusters {
					names = append(names, c.ClusterName)
				}
				got[stage.StageName] = strings.Join(names, " ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, stages (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		limit    *intstr.IntOrString
		clusters int
		want     int
	}{
		"default":                 {clusters: 10, want: 1},
		"number":                  {limit: ptr.To(intstr.FromInt32(3)), clusters: 10, want: 3},
		"percentage rounded down": {limit: ptr.To(intstr.FromString("50%")), clusters: 5, want: 2},
		"at least one":            {limit: ptr.To(intstr.FromString("1%")), clusters: 5, want: 1},
		"all":                     {limit: ptr.To(intstr.FromString("100%")), clusters: 7, want: 7},
		"nonsense":                {limit: ptr.To(intstr.FromString("many")), clusters: 7, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := concurrency(tc.limit, tc.clusters); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// largeFleet is a placement on many clusters, whose names have a given length.
func largeFleet(t *testing.T, clusters, nameLength int) *sim {
	t.Helper()
	s := newSim(t)
	s.strategy("all", placementv1.StageConfig{Name: "all", LabelSelector: &metav1.LabelSelector{}, MaxConcurrency: ptr.To(intstr.FromString("100%"))})
	for i := range clusters {
		name := fmt.Sprintf("c%06d", i)
		name += strings.Repeat("x", nameLength-len(name))
		s.members[name] = &schedule.Cluster{Name: name}
		b := &placementv1.ClusterResourceBinding{ObjectMeta: s.meta(placement.BindingName(s.key(), name))}
		b.Annotations = map[string]string{placementv1.AnnotationPlacementUID: string(s.placement.UID)}
		b.Spec = placementv1.ResourceBindingSpec{State: placementv1.BindingStateScheduled, SchedulingPolicySnapshotName: s.policy.Name, TargetCluster: name}
		s.bindings[name] = b
	}
	s.reschedule()
	return s
}

// TestStatusBudget drives fleets whose rows do not all fit: first all fail, then most heal and some leave, then all are done.
func TestStatusBudget(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ clusters, nameLength int }{
		"3000 clusters with long names":   {clusters: 3000, nameLength: 63},
		"10000 clusters with short names": {clusters: 10_000, nameLength: 7},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := largeFleet(t, tc.clusters, tc.nameLength)
			r := s.create("example-run", "all", "0", run)
			check := func(when string, want placementv1.StageClusterCounts) {
				t.Helper()
				s.settle()
				stage := &r.Status.StagesStatus[0]
				if size := sizeOf(&r.Status); size > maxStatusBytes {
					t.Errorf("%s: the status has %d bytes", when, size)
				}
				if diff := cmp.Diff(&want, stage.ClusterCounts); diff != "" {
					t.Errorf("%s: counts (-want +got):\n%s", when, diff)
				}
				if len(stage.Clusters) != tc.clusters {
					t.Errorf("%s: %d rows", when, len(stage.Clusters))
				}
			}
			total := count(tc.clusters)
			check("started", placementv1.StageClusterCounts{Total: total, Updating: total})
			for cluster := range s.bindings {
				s.refuse(cluster)
			}
			check("all failing", placementv1.StageClusterCounts{Total: total, Updating: total, Failing: total})
			if got := conditionOf(r.Status.Conditions, placementv1.ConditionProgressing); got != "False/UpdateRunStuck" {
				t.Errorf("all failing: Progressing is %s", got)
			}
			rows := r.Status.StagesStatus[0].Clusters
			for i := range tc.clusters / 2 {
				s.available(rows[i].ClusterName)
			}
			for i := tc.clusters - 10; i < tc.clusters; i++ {
				s.leave(rows[i].ClusterName)
			}
			half := total / 2
			check("half done", placementv1.StageClusterCounts{Total: total, Succeeded: half, Updating: total - half - 10, Failing: total - half - 10, Skipped: 10})
			if first := r.Status.StagesStatus[0].Clusters[0]; first.State != placementv1.ClusterUpdatingStateSucceeded {
				t.Errorf("half done: the first row, which is done, should give way: %+v", first)
			}
			if next := r.Status.StagesStatus[0].Clusters[half]; len(next.Conditions) == 0 {
				t.Errorf("half done: the first row in flight should be whole: %+v", next)
			}
			for cluster, b := range s.bindings {
				if b.Spec.State == placementv1.BindingStateBound {
					s.available(cluster)
				}
			}
			check("done", placementv1.StageClusterCounts{Total: total, Succeeded: total - 10, Skipped: 10})
			if got := conditionOf(r.Status.Conditions, placementv1.ConditionSucceeded); got != "True/UpdateRunSucceeded" {
				t.Errorf("done: Succeeded is %s", got)
			}
		})
	}
}

// TestPlanTooLarge refuses a plan that could not be stored.
func TestPlanTooLarge(t *testing.T) {
	t.Parallel()
	s := largeFleet(t, 10_000, 63)
	r := s.create("example-run", "all", "0", run)
	s.settle()
	c := r.Status.Conditions[0]
	if c.Reason != placementv1.ReasonUpdateRunInitializationFailed || !strings.Contains(c.Message, "10000 clusters") ||
		!strings.Contains(c.Message, "divide the clusters among several placements") {
		t.Errorf("Initialized is %s/%s: %s", c.Status, c.Reason, c.Message)
	}
	if len(r.Status.StagesStatus) != 0 {
		t.Error("the plan was stored all the same")
	}
}

// TestDamagedStatus ends a run whose plan was edited away, instead of doing something else.
func TestDamagedStatus(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*placementv1.UpdateRunStatus){
		"no strategy":       func(s *placementv1.UpdateRunStatus) { s.StagedUpdateStrategySnapshot = nil },
		"no deletion stage": func(s *placementv1.UpdateRunStatus) { s.DeletionStageStatus = nil },
		"no index":          func(s *placementv1.UpdateRunStatus) { s.ResourceSnapshotIndexUsed = "" },
		"fewer stages":      func(s *placementv1.UpdateRunStatus) { s.StagesStatus = s.StagesStatus[:1] },
		"no tasks":          func(s *placementv1.UpdateRunStatus) { s.StagesStatus[0].AfterStageTaskStatus = nil },
		"no wait time": func(s *placementv1.UpdateRunStatus) {
			s.StagedUpdateStrategySnapshot.Stages[0].AfterStageTasks[0].WaitTime = nil
		},
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := seedFleet(t)
			r := s.create("example-run", "example", "0", run)
			s.settle()
			damage(&r.Status)
			s.settle()
			if got := conditionOf(r.Status.Conditions, placementv1.ConditionSucceeded); got != "False/UpdateRunFailed" {
				t.Errorf("Succeeded is %s", got)
			}
		})
	}
}

// TestStrategiesAreFrozen: a run gives all of its clusters the strategies that the placement had when it started.
func TestStrategiesAreFrozen(t *testing.T) {
	t.Parallel()
	s := newSim(t)
	s.join("a", nil)
	s.join("b", nil)
	s.strategy("one", allAtOnce(atMost("1")))
	server := &placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeServerSideApply}
	mirror := &placementv1.ReportBackStrategy{Type: placementv1.ReportBackStrategyTypeMirror, Destination: placementv1.ReportBackDestinationWorkAPI}
	s.placement.Spec.Strategy.ApplyStrategy, s.placement.Spec.Strategy.ReportBackStrategy = server, mirror
	s.create("first", "one", "0", run)
	s.settle()
	s.placement.Spec.Strategy.ApplyStrategy, s.placement.Spec.Strategy.ReportBackStrategy = nil, nil
	s.available("a")
	s.settle()
	for name, b := range s.bindings {
		if !b.Spec.ApplyStrategy.Same(server) || !b.Spec.ReportBackStrategy.Same(mirror) {
			t.Errorf("cluster %s was given %+v and %+v", name, b.Spec.ApplyStrategy, b.Spec.ReportBackStrategy)
		}
	}
}
