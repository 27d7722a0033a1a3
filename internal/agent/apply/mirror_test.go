package apply

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var inTheWork = &placementv1.ReportBackStrategy{Type: placementv1.ReportBackStrategyTypeMirror, Destination: placementv1.ReportBackDestinationWorkAPI}

// mirror has the pass report statuses back, or not.
func (r *reporter) mirror(t *testing.T, strategy *placementv1.ReportBackStrategy) {
	t.Helper()
	r.refresh(t)
	r.work.Spec.ReportBackStrategy = strategy
	if err := r.hub.Update(t.Context(), r.work); err != nil {
		t.Fatal(err)
	}
}

func TestMirroredStatus(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.mirror(t, inTheWork)
	r.report(t, 0, deployment(t, "web", 3))
	got := r.current().ManifestConditions[0].BackReportedStatus
	if got == nil {
		t.Fatal("no status was reported back")
	}
	want := `{"apiVersion":"apps/v1","kind":"Deployment","status":{"availableReplicas":3,"observedGeneration":1,"updatedReplicas":3}}`
	if diff := cmp.Diff(want, string(got.ObservedStatus.Raw)); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	if got.ObservedInMemberClusterGeneration != 1 || !got.ObservationTime.Time.Equal(r.clock.now) {
		t.Errorf("generation %d at %s", got.ObservedInMemberClusterGeneration, got.ObservationTime)
	}
	since := got.ObservationTime
	r.report(t, time.Hour, deployment(t, "web", 3))
	if r.writes != 1 {
		t.Errorf("%d writes, want none where nothing changed", r.writes)
	}
	r.report(t, time.Second, deployment(t, "web", 3), deployment(t, "shop", 3))
	if again := r.current().ManifestConditions[0].BackReportedStatus; !again.ObservationTime.Equal(&since) {
		t.Errorf("a status that is as it was is said to be of %s, want %s", again.ObservationTime, since)
	}
	r.mirror(t, nil)
	r.report(t, time.Second, deployment(t, "web", 3), deployment(t, "shop", 3))
	if got := r.current().ManifestConditions[0].BackReportedStatus; got != nil {
		t.Errorf("it is still reported after it was switched off: %s", got.ObservedStatus.Raw)
	}
}

// TestWhatIsNotMirrored: of these nothing is reported, though the Work asks for it.
func TestWhatIsNotMirrored(t *testing.T) {
	t.Parallel()
	of := func(kind, text string) func(*manifest) {
		return func(m *manifest) { m.key.GroupKind, m.live = schema.GroupKind{Kind: kind}, parse(t, text) }
	}
	for name, change := range map[string]func(*manifest){
		"a Secret, whatever it says":    of("Secret", `{apiVersion: v1, kind: Secret, metadata: {name: s}, status: {token: hidden}}`),
		"a ConfigMap, whatever it says": of("ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: s}, status: {a: b}}`),
		"no status":                     of("Service", `{apiVersion: v1, kind: Service, metadata: {name: s}}`),
		"an empty status":               of("Service", `{apiVersion: v1, kind: Service, metadata: {name: s}, status: {}}`),
		"a status that is no object":    of("Thing", `{apiVersion: v1, kind: Thing, metadata: {name: s}, status: fine}`),
		"what is not applied":           func(m *manifest) { m.fail(placementv1.ReasonManifestApplyFailed, "no") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReporter(t)
			r.mirror(t, inTheWork)
			m := deployment(t, "web", 3)
			change(m)
			r.report(t, 0, m)
			data, err := json.Marshal(r.current())
			if err != nil || r.writes != 1 || strings.Contains(string(data), "observedStatus") {
				t.Errorf("%d writes, error %v: %s", r.writes, err, data)
			}
		})
	}
}

// TestBusyStatusCostsFewWrites is a Deployment that counts up every 50 ms, without end.
func TestBusyStatusCostsFewWrites(t *testing.T) {
	t.Parallel()
	r := newReporter(t)
	r.mirror(t, inTheWork)
	r.report(t, 0, deployment(t, "web", 0))
	for i := range int64(200) {
		r.report(t, 50*time.Millisecond, deployment(t, "web", i%3))
		if r.again > mirrorPace {
			t.Fatalf("looks again after %s: the last change is not told", r.again)
		}
	}
	if r.writes < 10 || r.writes > 11 {
		t.Errorf("%d writes in 10 s, want one a second", r.writes)
	}
	r.report(t, time.Millisecond, deployment(t, "web", 3))
	if !meta.IsStatusConditionTrue(r.current().Conditions, placementv1.ConditionAvailable) {
		t.Error("that the Deployment is available is not told at once")
	}
}

func TestMirroredStatusesStayWithinTheSize(t *testing.T) {
	t.Parallel()
	big := func(name string, bytes int) *manifest {
		m := deployment(t, name, 3)
		m.live.Object["status"] = map[string]any{"text": strings.Repeat("x", bytes), "observedGeneration": int64(1), "updatedReplicas": int64(3), "availableReplicas": int64(3)}
		return m
	}
	for name, tc := range map[string]struct {
		manifests []*manifest
		kept      int
		left      string
	}{
		"all fit":                {[]*manifest{big("a", 60_000), big("b", 60_000)}, 2, ""},
		"one is too large alone": {[]*manifest{big("a", 70_000), big("b", 10)}, 1, "the statuses of 1 objects are not reported back"},
		"too much together": {func() (all []*manifest) {
			for i := range 20 {
				all = append(all, big(fmt.Sprint(i), 40_000+i))
			}
			return all
		}(), 12, "the statuses of 8 objects are not reported back"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReporter(t)
			r.mirror(t, inTheWork)
			r.report(t, 0, tc.manifests...)
			kept := 0
			for i := range r.current().ManifestConditions {
				if r.current().ManifestConditions[i].BackReportedStatus != nil {
					kept++
				}
			}
			if kept != tc.kept || len(r.current().ManifestConditions) != len(tc.manifests) || size(r.current()) > maxStatus {
				t.Errorf("%d statuses of %d objects in %d bytes, want %d and all objects", kept, len(r.current().ManifestConditions), size(r.current()), tc.kept)
			}
			trimmed := meta.FindStatusCondition(r.current().Conditions, placementv1.ConditionStatusTrimmed)
			if said := trimmed != nil; said != (tc.left != "") || (said && !strings.Contains(trimmed.Message, tc.left)) {
				t.Errorf("StatusTrimmed is %+v, want %q", trimmed, tc.left)
			}
			if !meta.IsStatusConditionTrue(r.current().Conditions, placementv1.ConditionAvailable) {
				t.Error("the Work is not available")
			}
		})
	}
}

func testMirror(t *testing.T) {
	a := startAgent(t, "mirrored")
	d := deploymentOf("mirrored", 3)
	w := a.work("mirrored", "work", 1, d, settings("mirrored", "1"))
	w.Spec.ReportBackStrategy = inTheWork
	a.create(w)
	a.await(w, placementv1.ConditionApplied, applied)

	count := func(ready int32) {
		t.Helper()
		live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}}
		framework.Await(t, a.member, live, "it is there", func(*appsv1.Deployment) bool { return true })
		live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: ready, AvailableReplicas: ready}
		if err := a.member.Status().Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	reported := func(w *placementv1.Work) *appsv1.Deployment {
		for i := range w.Status.ManifestConditions {
			if m := &w.Status.ManifestConditions[i]; m.BackReportedStatus != nil && m.Identifier.Name == d.Name && m.Identifier.Kind == "Deployment" {
				back := &appsv1.Deployment{}
				if err := json.Unmarshal(m.BackReportedStatus.ObservedStatus.Raw, back); err != nil {
					t.Fatal(err)
				}
				return back
			}
		}
		return nil
	}
	for _, ready := range []int32{1, 2, 1} { // what is neither available nor another verdict counts, too
		count(ready)
		framework.Await(t, a.hub, w, fmt.Sprintf("%d are ready", ready), func(w *placementv1.Work) bool {
			back := reported(w)
			return back != nil && back.Status.ReadyReplicas == ready && back.Status.ObservedGeneration > 0
		})
	}
	for i := range w.Status.ManifestConditions {
		if m := &w.Status.ManifestConditions[i]; m.Identifier.Kind == "ConfigMap" && m.BackReportedStatus != nil {
			t.Errorf("a ConfigMap has a status: %s", m.BackReportedStatus.ObservedStatus.Raw)
		}
	}

	// Switched off, it is taken out of the Work.
	before := w.DeepCopy()
	w.Spec.ReportBackStrategy = nil
	if err := a.hub.Patch(t.Context(), w, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionApplied, applied)
	framework.Await(t, a.hub, w, "nothing is reported back", func(w *placementv1.Work) bool { return reported(w) == nil })
}
