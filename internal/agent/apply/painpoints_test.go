package apply

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testDeletedWhileReportOnly is entry 31 of the pain points: an object that is deleted in the member, while nothing is written
// there, is not said to be applied any more but to be missing, and is not made again until the placement applies again.
func testDeletedWhileReportOnly(t *testing.T) {
	a := startAgent(t, "missing")
	w := a.create(a.work("missing", "work", 1, settings("missing-a", "1"), settings("missing-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	a.switchTo(w, reporting)
	a.await(w, placementv1.ConditionDiffReported, compared)
	deleted := a.live("missing-a")
	if err := a.member.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	a.awaitDiffs(w, 0, drift.Missing()...)
	for _, condition := range []string{placementv1.ConditionApplied, placementv1.ConditionAvailable} {
		if reasonOf(w, 0, condition) != "" || meta.FindStatusCondition(w.Status.Conditions, condition) != nil {
			t.Errorf("%s is still said: %+v", condition, w.Status)
		}
	}
	a.edit("missing-b", func(data map[string]string) { data["key"] = "drifted" }) // another pass
	a.awaitDiffs(w, 1, placementv1.PatchDetail{Path: "/data/key", ValueInMember: "drifted", ValueInHub: "1"})
	if !cmp.Equal(drift.Missing(), diffs(w, 0)) {
		t.Errorf("it is not missing any more: %v", diffs(w, 0))
	}
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(deleted), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("report-only, but the object was made again: %v", err)
	}
	a.switchTo(w, applying)
	a.await(w, placementv1.ConditionAvailable, available)
	if got := a.live("missing-a"); got.UID == deleted.UID || got.Data["key"] != "1" || diffs(w, 0) != nil {
		t.Errorf("applied again, it is %s with %v, and said to differ in %v", got.UID, got.Data, diffs(w, 0))
	}
}

// testEditedLabel is entry 34 of the pain points: a label that somebody edited in a member is drift, with its path, what it is
// and what it should be; what Kruise Rollouts and Kubernetes write into the object is none.
func testEditedLabel(t *testing.T) {
	a := startAgent(t, "label")
	labelled := func(tier string) *corev1.ConfigMap {
		cm := settings("label-a", "1")
		cm.Labels = map[string]string{"tier": tier}
		return cm
	}
	w := a.create(by(a.work("label", "work", 1, labelled("free")), placementv1.ApplyStrategy{
		WhenToApply: placementv1.WhenToApplyTypeIfNotDrifted, ComparisonOption: placementv1.ComparisonOptionTypeFull,
	}))
	a.await(w, placementv1.ConditionAvailable, available)
	patch := func(metadata string) {
		t.Helper()
		err := a.member.Patch(t.Context(), labelled(""), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":`+metadata+`}`)), client.FieldOwner("somebody"))
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"labels":{"rollouts.kruise.io/stable-revision":"x"},"annotations":{"rollouts.kruise.io/in-progressing":"x","deployment.kubernetes.io/revision":"3"}}`)
	patch(`{"labels":{"tier":"gold"}}`)
	want := []placementv1.PatchDetail{{Path: "/metadata/labels/tier", ValueInMember: "gold", ValueInHub: "free"}}
	framework.Await(t, a.hub, w, "reports the label", func(w *placementv1.Work) bool { return cmp.Equal(want, drifts(w, 0)) })
	a.switchTo(w, placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff, ComparisonOption: placementv1.ComparisonOptionTypeFull})
	a.awaitDiffs(w, 0, want...)
	patch(`{"labels":{"tier":"free"}}`)
	a.awaitDiffs(w, 0)
}
