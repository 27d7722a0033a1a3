package work

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/render"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// said is a Work at generation 2, of which the agent has said something.
func said(name string, conditions []metav1.Condition, manifests ...placementv1.ManifestCondition) *placementv1.Work {
	w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 2}}
	w.Status.Conditions, w.Status.ManifestConditions = conditions, manifests
	return w
}

func cond(conditionType, status, reason, message string, generation int64) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, ObservedGeneration: generation}
}

func manifest(name string, conditions ...metav1.Condition) placementv1.ManifestCondition {
	return placementv1.ManifestCondition{
		Identifier: placementv1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name}, Conditions: conditions}
}

var (
	applied   = cond("Applied", "True", placementv1.ReasonAllManifestsApplied, "", 2)
	available = cond("Available", "True", placementv1.ReasonAllManifestsAvailable, "", 2)
	refused   = cond("Applied", "False", placementv1.ReasonSomeManifestsAreNotApplied, "1 of 2", 2)
	waiting   = cond("Available", "False", placementv1.ReasonSomeManifestsAreNotAvailable, "1 of 2", 2)
	denied    = manifest("denied", cond("Applied", "False", placementv1.ReasonManifestApplyFailed, "the member says no", 2))
	preparing = manifest("preparing", cond("Applied", "False", placementv1.ReasonManifestPreparing, "moves here from Work other", 2))
	starting  = manifest("starting", cond("Applied", "True", placementv1.ReasonManifestApplied, "", 2),
		cond("Available", "False", placementv1.ReasonManifestNotAvailableYet, "0 of 1 pods", 2))
	unreadable = manifest("unreadable", cond("Applied", "True", placementv1.ReasonManifestApplied, "", 2),
		cond("Available", "False", placementv1.ReasonManifestAvailabilityFailed, "cannot read it", 2))
)

// An object that could not be overridden is listed with the time since when the binding says so, before what the member says.
func TestFailedOverridesAreListed(t *testing.T) {
	t.Parallel()
	w := said("w", []metav1.Condition{applied}, manifest("other", cond("Available", "False", "Why", "not ready", 2)))
	w.Labels = map[string]string{placementv1.LabelEnvelopeName: "e", placementv1.LabelEnvelopeType: "ResourceEnvelope"}
	object := placementv1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "a", Namespace: "n"}
	render.FailOverrides(w, []render.FailedOverride{{Object: object, Message: "no such path"}}, nil)
	broken := said("w-0", []metav1.Condition{applied})
	broken.Annotations = map[string]string{placementv1.AnnotationOverrideFailed: "somebody's word"}
	b := boundBinding()
	now := time.Unix(1000, 0)
	for range 2 {
		b.Status = statusOf(observed{binding: b, cluster: &schedule.Cluster{Name: "c"}, index: "1", works: []*placementv1.Work{w, broken}, now: now})
		now = now.Add(time.Hour)
	}
	if len(b.Status.FailedPlacements) != 2 || b.Status.FailedPlacements[1].Name != "other" {
		t.Fatalf("failed placements: %+v", b.Status.FailedPlacements)
	}
	object.Envelope = &placementv1.EnvelopeIdentifier{Name: "e", Type: "ResourceEnvelope"}
	want := placementv1.FailedResourcePlacement{ResourceIdentifier: object, Condition: metav1.Condition{
		Type: "Overridden", Status: "False", Reason: placementv1.ReasonOverriddenFailed, Message: "no such path", ObservedGeneration: 5, LastTransitionTime: metav1.Unix(1000, 0)}}
	if diff := cmp.Diff(want, b.Status.FailedPlacements[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c := meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionOverridden)
	if c == nil || !strings.Contains(c.Message, "no such path; somebody's word;") {
		t.Errorf("condition: %+v", c)
	}
}

// However much a member says, a status quotes a little of it.
func TestLongAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 600_000)
	said := func(applied, available metav1.Condition, m placementv1.ManifestCondition) *placementv1.Work {
		return said("w", []metav1.Condition{applied, available}, m)
	}
	named := manifest(long, cond("Applied", "False", placementv1.ReasonManifestApplyFailed, long, 2))
	unnamed := cond("Applied", "False", placementv1.ReasonManifestPreparing, long, 2)
	for name, w := range map[string]*placementv1.Work{
		"a refusal":                   said(refused, waiting, named),
		"a refusal as a whole":        said(cond("Applied", "False", "x", long, 2), waiting, placementv1.ManifestCondition{}),
		"a wait":                      said(refused, waiting, manifest("a", unnamed)),
		"a wait as a whole":           said(cond("Applied", "Unknown", "x", long, 2), waiting, placementv1.ManifestCondition{}),
		"a start":                     said(applied, waiting, manifest(long, cond("Available", "False", "x", long, 2))),
		"a start as a whole":          said(applied, cond("Available", "False", "x", long, 2), placementv1.ManifestCondition{}),
		"nothing, while it is unwell": {ObjectMeta: metav1.ObjectMeta{Name: "w", Generation: 2}},
	} {
		m := &clusterv1.MemberCluster{}
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionJoined, Status: "False", Message: long}}
		m.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent}}
		cluster := schedule.Observe(m)
		status := statusOf(observed{binding: &placementv1.ClusterResourceBinding{}, cluster: &cluster, works: []*placementv1.Work{w}})
		encoded, err := json.Marshal(status)
		if err != nil || len(encoded) > 10_000 || strings.ContainsRune(string(encoded), '\uFFFD') {
			t.Errorf("%s: a status of %d bytes, error %v", name, len(encoded), err)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	healthy := &schedule.Cluster{Name: "c"}
	tests := map[string]struct {
		cluster *schedule.Cluster
		works   []*placementv1.Work
		problem *problem
		// want are the conditions that follow RolloutStarted and Overridden; wantFailed the objects that failed.
		want, wantFailed []string
		wantUrgency      time.Duration // against a status in progress
		wantMessage      string        // in the last condition's
	}{
		"written, no answer": {
			works:       []*placementv1.Work{said("w", nil)},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=False/ApplyInProgress"},
			wantUrgency: detailTime,
			wantMessage: `the agent of cluster "c" has not answered for work object w`,
		},
		"no answer, the agent is lost": {
			cluster:     &schedule.Cluster{Name: "c", Disconnected: "no recent heartbeat signals (last received at noon)"},
			works:       []*placementv1.Work{said("w", nil)},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=False/ApplyInProgress"},
			wantUrgency: detailTime,
			wantMessage: "no recent heartbeat signals (last received at noon)",
		},
		// Entry 28 of the pain points: what a member said before it fell silent is not its health now.
		"available, and then the agent is lost": {
			cluster:     &schedule.Cluster{Name: "c", Disconnected: "no recent heartbeat signals (last received at noon)"},
			works:       []*placementv1.Work{said("w", []metav1.Condition{applied, available})},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied", "Available=Unknown/AvailableUnknown"},
			wantUrgency: availableTime,
			wantMessage: "were available when the member was last heard of; the cluster is not connected to the fleet: no recent heartbeat signals (last received at noon)",
		},
		"the answer is for an earlier generation": {
			works: []*placementv1.Work{said("w", []metav1.Condition{
				cond("Applied", "True", placementv1.ReasonAllManifestsApplied, "", 1),
				cond("Available", "True", placementv1.ReasonAllManifestsAvailable, "", 1)}, denied)},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=False/ApplyInProgress"},
			wantUrgency: detailTime,
		},
		"one of two answered": {
			works:       []*placementv1.Work{said("w", []metav1.Condition{applied, available}), said("w-0", nil)},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=False/ApplyInProgress"},
			wantUrgency: detailTime,
			wantMessage: "work object w-0",
		},
		"about to be applied": {
			works:       []*placementv1.Work{said("w", []metav1.Condition{refused}, preparing, preparing)},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=False/ApplyInProgress"},
			wantUrgency: detailTime,
			wantMessage: `the agent of cluster "c" says of work object w: ConfigMap ns/preparing: moves here from Work other (and 1 more)`,
		},
		"about to be looked at": {
			works: []*placementv1.Work{said("w", []metav1.Condition{
				cond("Applied", "Unknown", "Starting", "the agent has just started", 2)})},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=False/ApplyInProgress"},
			wantUrgency: detailTime,
			wantMessage: `the agent of cluster "c" says of work object w: the agent has just started`,
		},
		"refused, while another Work is not answered for": {
			works:       []*placementv1.Work{said("w", nil), said("w-0", []metav1.Condition{refused}, preparing, denied)},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=False/NotAllWorkHaveBeenApplied"},
			wantFailed:  []string{"denied Applied"},
			wantMessage: `Cluster "c" has failed to apply work object w-0: ConfigMap ns/denied: the member says no`,
		},
		"applied, not yet judged": {
			works:       []*placementv1.Work{said("w", []metav1.Condition{applied})},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied", "Available=False/NotAllWorkAreAvailable"},
			wantUrgency: availableTime,
		},
		"starting": {
			works:       []*placementv1.Work{said("w", []metav1.Condition{applied, waiting}, starting)},
			want:        []string{"WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied", "Available=False/NotAllWorkAreAvailable"},
			wantFailed:  []string{"starting Available"},
			wantUrgency: availableTime,
			wantMessage: "ConfigMap ns/starting: 0 of 1 pods",
		},
		"its availability cannot be told": {
			works:      []*placementv1.Work{said("w", []metav1.Condition{applied, waiting}, starting, unreadable)},
			want:       []string{"WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied", "Available=False/NotAllWorkAreAvailable"},
			wantFailed: []string{"starting Available", "unreadable Available"},
		},
		"available": {
			works: []*placementv1.Work{said("w", []metav1.Condition{applied, available}), said("w-0", []metav1.Condition{applied, available})},
			want:  []string{"WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied", "Available=True/AllWorkAreAvailable"},
		},
		"available as far as can be told": {
			works: []*placementv1.Work{said("w", []metav1.Condition{applied, cond("Available", "True", placementv1.ReasonWorkNotTrackable, "", 2)})},
			want: []string{"WorkSynchronized=True/AllWorkSynced", "Applied=True/AllWorkHaveBeenApplied",
				"Available=True/NotAllWorkAreAvailabilityTrackable"},
		},
		"waits for its namespace": {
			problem:     waitFor("Namespace fleet-member-c does not exist yet"),
			want:        []string{"WorkSynchronized=False/WorkNotSynchronizedYet"},
			wantUrgency: availableTime,
			wantMessage: "Namespace fleet-member-c does not exist yet",
		},
		"cannot be written": {
			problem:     failure("too large"),
			want:        []string{"WorkSynchronized=False/SyncWorkFailed"},
			wantMessage: "Failed to synchronize the work to the latest: too large",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := boundBinding()
			if tc.cluster == nil {
				tc.cluster = healthy
			}
			inProgress := statusOf(observed{binding: b, cluster: healthy, index: "1", works: []*placementv1.Work{said("w", nil)}})
			got := statusOf(observed{binding: b, cluster: tc.cluster, index: "1", works: tc.works, problem: tc.problem, now: time.Now()})

			wantConditions := append([]string{"RolloutStarted=True/RolloutStarted", "Overridden=True/NoOverrideSpecified"}, tc.want...)
			if diff := cmp.Diff(wantConditions, shown(&got)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			var failed []string
			for _, f := range got.FailedPlacements {
				failed = append(failed, f.Name+" "+f.Condition.Type)
			}
			if diff := cmp.Diff(tc.wantFailed, failed); diff != "" {
				t.Errorf("failed placements (-want +got):\n%s", diff)
			}
			if last := got.Conditions[len(got.Conditions)-1]; !strings.Contains(last.Message, tc.wantMessage) {
				t.Errorf("message of %s: %q, which does not contain %q", last.Type, last.Message, tc.wantMessage)
			}
			if u := urgency(&inProgress, &got); u != tc.wantUrgency {
				t.Errorf("urgency: %v, want %v", u, tc.wantUrgency)
			}
		})
	}
}

func boundBinding() *placementv1.ClusterResourceBinding {
	return &placementv1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Generation: 5, Annotations: map[string]string{placementv1.AnnotationUpdateRun: "run-1"}},
		Spec:       placementv1.ResourceBindingSpec{State: placementv1.BindingStateBound, ResourceSnapshotName: "app-1-snapshot", TargetCluster: "c"},
	}
}

func shown(s *placementv1.ResourceBindingStatus) []string {
	var all []string
	for _, c := range s.Conditions {
		all = append(all, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return all
}

// A rollout that starts is a transition, even where one had started before: that is when this one started.
func TestRolloutStartedAnew(t *testing.T) {
	t.Parallel()
	b := boundBinding()
	first, later := time.Unix(1000, 0), time.Unix(2000, 0)
	start := func(index string, now time.Time) *metav1.Condition {
		b.Status = statusOf(observed{binding: b, index: index, works: []*placementv1.Work{said("w", nil)}, now: now})
		return meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionRolloutStarted)
	}
	c := start("1", first)
	if want := "Detected the new changes on the resources and started the rollout process, resourceSnapshotIndex: 1, updateRun: run-1"; c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	if c = start("1", later); !c.LastTransitionTime.Time.Equal(first) {
		t.Errorf("nothing new, but the time is %v", c.LastTransitionTime)
	}
	if c = start("2", later); !c.LastTransitionTime.Time.Equal(later) {
		t.Errorf("another snapshot at %v, but the time is %v", later, c.LastTransitionTime)
	}
}

// However much a member says, the status stays within its budget, and says first what was not applied.
func TestFailedPlacementsAreBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letter := rapid.SampledFrom([]string{"x", "é", "界", "😀"}).Draw(t, "letter")
		long := strings.Repeat(letter, rapid.IntRange(0, 9000).Draw(t, "length"))
		w := said("w", []metav1.Condition{refused})
		for i := range rapid.IntRange(0, 300).Draw(t, "manifests") {
			kind := rapid.SampledFrom([]string{"Applied", "Available"}).Draw(t, "kind")
			w.Status.ManifestConditions = append(w.Status.ManifestConditions, manifest(strings.Repeat("n", i), cond(kind, "False", "Why", long, 2)))
		}
		all := failedPlacements([]*placementv1.Work{w}, nil)
		if len(all) > maxFailed {
			t.Fatalf("%d objects", len(all))
		}
		available := false
		for _, f := range all {
			if len(f.Condition.Message) > 1024 || strings.ContainsRune(f.Condition.Message, '\uFFFD') {
				t.Fatalf("message of %d bytes, or cut within a character", len(f.Condition.Message))
			}
			if f.Condition.Type == "Available" {
				available = true
			} else if available {
				t.Fatal("an object that was not applied stands after one that is not available")
			}
		}
	})
}
