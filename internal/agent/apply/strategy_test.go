package apply

import (
	"encoding/json"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	reporting = placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeReportDiff}
	applying  = placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeClientSideApply}
)

const (
	compared = "True/AllManifestsDiffReported"
	refusal  = "False/SomeManifestsAreNotApplied"
)

// TestStrategies runs against one member that its parts share.
func TestStrategies(t *testing.T) {
	memberConfig = framework.StartMemberAPIServer(t)
	for name, test := range map[string]func(*testing.T){
		"reports and writes nothing":          testReportDiff,
		"reports anew when something changes": testReportDiffWatches,
		"reports of what cannot be compared":  testReportDiffFails,
		"reports no secrets":                  testReportDiffSecret,
		"switches both ways":                  testSwitch,
		"report-only prunes nothing":          testReportDiffPrunesNothing,
		"report-only claims nothing":          testReportDiffClaimsNothing,
		"compares all of it":                  testFullComparison,
		"never takes over":                    testTakeOverNever,
		"takes over what does not differ":     testTakeOverIfNoDiff,
		"leaves drift":                        testIfNotDrifted,
		"tells what others added":             testFullDrift,
		"server-side, conflicts":              testServerSideConflict,
		"co-owners":                           testCoOwners,
		"abandons":                            testAbandon,
		"abandons only what is ours":          testAbandonOnlyWhatIsOurs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// by is a Work with an apply strategy.
func by(w *placementv1.Work, strategy placementv1.ApplyStrategy) *placementv1.Work {
	w.Spec.ApplyStrategy = &strategy
	return w
}

// switchTo gives a Work another strategy.
func (a *agent) switchTo(w *placementv1.Work, strategy placementv1.ApplyStrategy) {
	a.t.Helper()
	data, err := json.Marshal(strategy.WithDefaults())
	if err != nil {
		a.t.Fatal(err)
	}
	patch := `{"spec":{"applyStrategy":` + string(data) + `}}`
	if err := a.hub.Patch(a.t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		a.t.Fatalf("change the strategy of Work %s: %v", w.Name, err)
	}
}

// diffs are the differences that the Work's status tells of one manifest.
func diffs(w *placementv1.Work, i int) []placementv1.PatchDetail {
	if len(w.Status.ManifestConditions) <= i || w.Status.ManifestConditions[i].DiffDetails == nil {
		return nil
	}
	return w.Status.ManifestConditions[i].DiffDetails.ObservedDiffs
}

func drifts(w *placementv1.Work, i int) []placementv1.PatchDetail {
	if len(w.Status.ManifestConditions) <= i || w.Status.ManifestConditions[i].DriftDetails == nil {
		return nil
	}
	return w.Status.ManifestConditions[i].DriftDetails.ObservedDrifts
}

// reasonOf is the reason of a condition of one manifest.
func reasonOf(w *placementv1.Work, i int, conditionType string) string {
	if len(w.Status.ManifestConditions) <= i {
		return ""
	}
	if c := meta.FindStatusCondition(w.Status.ManifestConditions[i].Conditions, conditionType); c != nil {
		return c.Reason
	}
	return ""
}

func (a *agent) existing(cm *corev1.ConfigMap) *corev1.ConfigMap {
	a.t.Helper()
	if err := a.member.Create(a.t.Context(), cm, client.FieldOwner("somebody")); err != nil {
		a.t.Fatalf("create ConfigMap %s in the member: %v", cm.Name, err)
	}
	return cm
}

// edit changes a ConfigMap in the member, as somebody there would.
func (a *agent) edit(name string, change func(map[string]string)) {
	a.t.Helper()
	cm := a.live(name)
	before := cm.DeepCopy()
	change(cm.Data)
	if err := a.member.Patch(a.t.Context(), cm, client.MergeFrom(before), client.FieldOwner("somebody")); err != nil {
		a.t.Fatalf("change ConfigMap %s in the member: %v", name, err)
	}
}

func (a *agent) awaitDiffs(w *placementv1.Work, i int, want ...placementv1.PatchDetail) {
	a.t.Helper()
	framework.Await(a.t, a.hub, w, "reports what differs", func(w *placementv1.Work) bool { return cmp.Equal(want, diffs(w, i)) })
}

func testReportDiff(t *testing.T) {
	a := startAgent(t, "report")
	other := settings("report-a", "theirs")
	other.Data["more"] = "theirs"
	a.existing(other)
	w := a.create(by(a.work("report", "work", 1, settings("report-a", "ours"), settings("report-b", "ours")), reporting))
	a.await(w, placementv1.ConditionDiffReported, compared)
	if diff := cmp.Diff([]placementv1.PatchDetail{{Path: "/data/key", ValueInMember: "theirs", ValueInHub: "ours"}}, diffs(w, 0)); diff != "" {
		t.Errorf("what differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(drift.Missing(), diffs(w, 1)); diff != "" {
		t.Errorf("of what is missing (-want +got):\n%s", diff)
	}
	if d := w.Status.ManifestConditions[1].DiffDetails; d.ObservedInMemberClusterGeneration != nil {
		t.Errorf("what is missing has the generation %d", *d.ObservedInMemberClusterGeneration)
	}
	if meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionApplied) != nil || meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionAvailable) != nil {
		t.Errorf("conditions of what was applied: %v", w.Status.Conditions)
	}
	if got := a.live("report-a"); got.ResourceVersion != other.ResourceVersion {
		t.Error("the member's object was written")
	}
	framework.AwaitGone(t, a.member, settings("report-b", ""))
	framework.AwaitGone(t, a.member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: w.Name}})
	a.remove(w, true, "True/ResourcesRemoved")
	if got := a.live("report-a"); got.ResourceVersion != other.ResourceVersion {
		t.Error("the member's object was written when the Work went")
	}
}

func testReportDiffWatches(t *testing.T) {
	a := startAgent(t, "watched")
	a.existing(settings("watched-a", "same"))
	w := a.create(by(a.work("watched", "work", 1, settings("watched-a", "same")), reporting))
	a.await(w, placementv1.ConditionDiffReported, compared)
	if got := reasonOf(w, 0, placementv1.ConditionDiffReported); got != placementv1.ReasonManifestNoDiffFound {
		t.Errorf("of what is the same: %s", got)
	}
	a.edit("watched-a", func(data map[string]string) { data["key"] = "other" })
	a.awaitDiffs(w, 0, placementv1.PatchDetail{Path: "/data/key", ValueInMember: "other", ValueInHub: "same"})
	first := w.Status.ManifestConditions[0].DiffDetails.FirstDiffedObservedTime
	a.edit("watched-a", func(data map[string]string) { data["key"] = "another" })
	a.awaitDiffs(w, 0, placementv1.PatchDetail{Path: "/data/key", ValueInMember: "another", ValueInHub: "same"})
	if got := w.Status.ManifestConditions[0].DiffDetails.FirstDiffedObservedTime; !got.Equal(&first) {
		t.Errorf("it has differed since %s, which became %s", first, got)
	}
	if err := a.member.Delete(t.Context(), settings("watched-a", "")); err != nil {
		t.Fatal(err)
	}
	a.awaitDiffs(w, 0, drift.Missing()...)
	a.existing(settings("watched-a", "same"))
	a.awaitDiffs(w, 0)
}

func testReportDiffFails(t *testing.T) {
	a := startAgent(t, "nokind")
	a.existing(settings("nokind-a", "x"))
	unknown := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Nothing"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	w := a.create(by(a.work("nokind", "work", 1, unknown, settings("nokind-a", "y")), reporting))
	c := a.await(w, placementv1.ConditionDiffReported, "False/SomeManifestsHaveNotReportedDiff")
	if !strings.Contains(c.Message, "1 of 2") {
		t.Errorf("told: %s", c.Message)
	}
	if got := reasonOf(w, 0, placementv1.ConditionDiffReported); got != placementv1.ReasonManifestFailedToReportDiff {
		t.Errorf("of a kind that is not served: %s", got)
	}
	if len(diffs(w, 1)) != 1 {
		t.Error("one object that cannot be compared stops the others")
	}
}

func testReportDiffSecret(t *testing.T) {
	a := startAgent(t, "hidden")
	secret := func(value string) *corev1.Secret {
		return &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hidden"},
			Data: map[string][]byte{"password": []byte(value)}}
	}
	if err := a.member.Create(t.Context(), secret("swordfish")); err != nil {
		t.Fatal(err)
	}
	w := a.create(by(a.work("hidden", "work", 1, secret("tr0ub4dor")), reporting))
	a.await(w, placementv1.ConditionDiffReported, compared)
	if diff := cmp.Diff([]placementv1.PatchDetail{{Path: "/data/password", ValueInMember: drift.Redacted, ValueInHub: drift.Redacted}}, diffs(w, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func testSwitch(t *testing.T) {
	a := startAgent(t, "switch")
	before := a.existing(settings("switch-a", "theirs"))
	w := a.create(by(a.work("switch", "work", 1, settings("switch-a", "ours")), reporting))
	a.await(w, placementv1.ConditionDiffReported, compared)
	a.switchTo(w, applying)
	a.await(w, placementv1.ConditionAvailable, available)
	if meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionDiffReported) != nil || diffs(w, 0) != nil {
		t.Error("the report stays although the object is applied")
	}
	if got := a.live("switch-a"); got.Data["key"] != "ours" || got.UID != before.UID {
		t.Errorf("applied as %v", got.Data)
	}
	a.switchTo(w, reporting)
	a.await(w, placementv1.ConditionDiffReported, compared)
	a.edit("switch-a", func(data map[string]string) { data["key"] = "drifted" })
	a.awaitDiffs(w, 0, placementv1.PatchDetail{Path: "/data/key", ValueInMember: "drifted", ValueInHub: "ours"})
	if got := a.live("switch-a").Data["key"]; got != "drifted" {
		t.Errorf("report-only, but the object is %q", got)
	}
	a.switchTo(w, applying)
	framework.Await(t, a.member, a.live("switch-a"), "is put right", func(cm *corev1.ConfigMap) bool { return cm.Data["key"] == "ours" })
}

func testReportDiffPrunesNothing(t *testing.T) {
	a := startAgent(t, "noprune")
	w := a.create(a.work("noprune", "work", 1, settings("noprune-a", "1"), settings("noprune-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	a.switchTo(w, reporting)
	a.change(w, "1", settings("noprune-a", "2"))
	a.awaitDiffs(w, 0, placementv1.PatchDetail{Path: "/data/key", ValueInMember: "1", ValueInHub: "2"})
	b := a.live("noprune-b")
	a.switchTo(w, applying)
	framework.AwaitGone(t, a.member, b)
	if got := a.live("noprune-a").Data["key"]; got != "2" {
		t.Errorf("noprune-a is %q", got)
	}
}

// An object of which another Work does nothing but report is removed with the Work that has it.
func testReportDiffClaimsNothing(t *testing.T) {
	a := startAgent(t, "noclaim")
	has := a.create(a.work("noclaim-has", "work", 1, settings("noclaim-a", "1")))
	a.await(has, placementv1.ConditionAvailable, available)
	looks := a.create(by(a.work("noclaim-looks", "work", 1, settings("noclaim-a", "2")), reporting))
	a.await(looks, placementv1.ConditionDiffReported, compared)
	a.remove(has, true, "True/ResourcesRemoved")
	a.awaitDiffs(looks, 0, drift.Missing()...)
}

func testFullComparison(t *testing.T) {
	a := startAgent(t, "full")
	cm := settings("full-a", "same")
	cm.Data["more"] = "theirs"
	cm.Annotations = map[string]string{"deployment.kubernetes.io/revision": "3", "rollouts.kruise.io/hash": "x", "note": "theirs"}
	a.existing(cm)
	strategy := reporting
	strategy.ComparisonOption = placementv1.ComparisonOptionTypeFull
	w := a.create(by(a.work("full", "work", 1, settings("full-a", "same")), strategy))
	a.awaitDiffs(w, 0, placementv1.PatchDetail{Path: "/data/more", ValueInMember: "theirs"},
		placementv1.PatchDetail{Path: "/metadata/annotations/note", ValueInMember: "theirs"})
	a.switchTo(w, reporting) // what others added does not count
	a.awaitDiffs(w, 0)
	a.edit("full-a", func(data map[string]string) { data["more"] = "else" })
	a.switchTo(w, strategy)
	a.awaitDiffs(w, 0, placementv1.PatchDetail{Path: "/data/more", ValueInMember: "else"},
		placementv1.PatchDetail{Path: "/metadata/annotations/note", ValueInMember: "theirs"})
}

func testTakeOverNever(t *testing.T) {
	a := startAgent(t, "never")
	before := a.existing(settings("never-a", "ours")) // the same
	strategy := placementv1.ApplyStrategy{WhenToTakeOver: placementv1.WhenToTakeOverTypeNever}
	w := a.create(by(a.work("never", "work", 1, settings("never-a", "ours"), settings("never-b", "ours")), strategy))
	a.await(w, placementv1.ConditionApplied, refusal)
	if got := reasonOf(w, 0, placementv1.ConditionApplied); got != placementv1.ReasonManifestNotTakenOver {
		t.Errorf("told %s", got)
	}
	if got := a.live("never-a").ResourceVersion; got != before.ResourceVersion {
		t.Error("the object was written")
	}
	b := a.live("never-b") // is ours, and stays so
	a.edit("never-b", func(data map[string]string) { data["key"] = "drifted" })
	framework.Await(t, a.member, b, "is put right", func(cm *corev1.ConfigMap) bool { return cm.Data["key"] == "ours" })
	if err := a.member.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	a.await(w, placementv1.ConditionAvailable, available)
}

func testTakeOverIfNoDiff(t *testing.T) {
	a := startAgent(t, "nodiff")
	a.existing(settings("nodiff-a", "ours"))
	b := a.existing(settings("nodiff-b", "theirs"))
	strategy := placementv1.ApplyStrategy{WhenToTakeOver: placementv1.WhenToTakeOverTypeIfNoDiff}
	w := a.create(by(a.work("nodiff", "work", 1, settings("nodiff-a", "ours"), settings("nodiff-b", "ours")), strategy))
	a.await(w, placementv1.ConditionApplied, refusal)
	a.awaitDiffs(w, 1, placementv1.PatchDetail{Path: "/data/key", ValueInMember: "theirs", ValueInHub: "ours"})
	if got := reasonOf(w, 1, placementv1.ConditionApplied); got != placementv1.ReasonManifestFailedToTakeOver {
		t.Errorf("told %s", got)
	}
	if got := a.live("nodiff-b"); got.ResourceVersion != b.ResourceVersion {
		t.Error("what differs was written")
	}
	awaitOwner(t, a, "nodiff-a", w.Name)
	a.edit("nodiff-b", func(data map[string]string) { data["key"] = "ours" })
	a.await(w, placementv1.ConditionAvailable, available)
	awaitOwner(t, a, "nodiff-b", w.Name)
	if diffs(w, 1) != nil {
		t.Error("the differences stay although there are none")
	}
}

func testIfNotDrifted(t *testing.T) {
	a := startAgent(t, "leavedrift")
	strategy := placementv1.ApplyStrategy{WhenToApply: placementv1.WhenToApplyTypeIfNotDrifted}
	w := a.create(by(a.work("leavedrift", "work", 1, settings("leavedrift-a", "1")), strategy))
	a.await(w, placementv1.ConditionAvailable, available)
	a.edit("leavedrift-a", func(data map[string]string) { data["key"], data["theirs"] = "drifted", "x" })
	drifted := []placementv1.PatchDetail{{Path: "/data/key", ValueInMember: "drifted", ValueInHub: "1"}}
	framework.Await(t, a.hub, w, "reports the drift", func(w *placementv1.Work) bool { return cmp.Equal(drifted, drifts(w, 0)) })
	if got := reasonOf(w, 0, placementv1.ConditionApplied); got != placementv1.ReasonManifestFoundDrifts {
		t.Errorf("told %s", got)
	}
	if got := a.live("leavedrift-a").Data["key"]; got != "drifted" {
		t.Errorf("the object became %q", got)
	}
	a.edit("leavedrift-a", func(data map[string]string) { data["key"] = "1" })
	a.await(w, placementv1.ConditionAvailable, available)
	a.edit("leavedrift-a", func(data map[string]string) { data["key"] = "again" })
	a.await(w, placementv1.ConditionApplied, refusal)
	a.change(w, "1", settings("leavedrift-a", "2")) // the hub's change is applied
	a.await(w, placementv1.ConditionAvailable, available)
	if got := a.live("leavedrift-a").Data; got["key"] != "2" || got["theirs"] != "x" {
		t.Errorf("the object is %v", got)
	}
	a.edit("leavedrift-a", func(data map[string]string) { data["key"] = "once more" })
	a.await(w, placementv1.ConditionApplied, refusal)
	a.switchTo(w, applying)
	framework.Await(t, a.member, a.live("leavedrift-a"), "is put right", func(cm *corev1.ConfigMap) bool { return cm.Data["key"] == "2" })
	a.await(w, placementv1.ConditionAvailable, available)
	if _, still := a.live("leavedrift-a").Annotations[placementv1.AnnotationSpecHash]; still || drifts(w, 0) != nil {
		t.Error("something is left of the strategy of before")
	}
}

func testFullDrift(t *testing.T) {
	a := startAgent(t, "extra")
	strategy := placementv1.ApplyStrategy{ComparisonOption: placementv1.ComparisonOptionTypeFull}
	w := a.create(by(a.work("extra", "work", 1, settings("extra-a", "1")), strategy))
	a.await(w, placementv1.ConditionAvailable, available)
	if got := drifts(w, 0); got != nil {
		t.Errorf("drifts of what was applied just now: %v", got)
	}
	a.edit("extra-a", func(data map[string]string) { data["theirs"] = "x" })
	added := []placementv1.PatchDetail{{Path: "/data/theirs", ValueInMember: "x"}}
	framework.Await(t, a.hub, w, "reports what was added", func(w *placementv1.Work) bool { return cmp.Equal(added, drifts(w, 0)) })
	a.await(w, placementv1.ConditionAvailable, available)
	a.edit("extra-a", func(data map[string]string) { delete(data, "theirs") })
	framework.Await(t, a.hub, w, "reports no drift", func(w *placementv1.Work) bool { return drifts(w, 0) == nil })
}

func testServerSideConflict(t *testing.T) {
	a := startAgent(t, "ssa")
	a.existing(settings("ssa-a", "theirs"))
	strategy := placementv1.ApplyStrategy{Type: placementv1.ApplyStrategyTypeServerSideApply}
	w := a.create(by(a.work("ssa", "work", 1, settings("ssa-a", "ours"), settings("ssa-b", "ours")), strategy))
	a.await(w, placementv1.ConditionApplied, refusal)
	c := meta.FindStatusCondition(w.Status.ManifestConditions[0].Conditions, placementv1.ConditionApplied)
	if c.Reason != placementv1.ReasonManifestApplyFailed || !strings.Contains(c.Message, `"somebody"`) || !strings.Contains(c.Message, ".data.key") {
		t.Errorf("told %s: %s", c.Reason, c.Message)
	}
	if got := a.live("ssa-a").Data["key"]; got != "theirs" {
		t.Errorf("the object is %q", got)
	}
	strategy.ServerSideApplyConfig = &placementv1.ServerSideApplyConfig{Force: true}
	a.switchTo(w, strategy)
	a.await(w, placementv1.ConditionAvailable, available)
	if got := a.live("ssa-a").Data["key"]; got != "ours" {
		t.Errorf("forced, but the object is %q", got)
	}
}

func testCoOwners(t *testing.T) {
	a := startAgent(t, "coown")
	owner := a.existing(settings("coown-owner", "x"))
	cm := settings("coown-a", "theirs")
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	a.existing(cm)
	w := a.create(by(a.work("coown", "work", 1, settings("coown-a", "ours")), applying))
	a.await(w, placementv1.ConditionApplied, refusal)
	a.switchTo(w, placementv1.ApplyStrategy{AllowCoOwnership: true})
	a.await(w, placementv1.ConditionAvailable, available)
	got := a.live("coown-a")
	if len(got.OwnerReferences) != 2 || got.Data["key"] != "ours" {
		t.Errorf("owned by %v, with %v", got.OwnerReferences, got.Data)
	}
	a.remove(w, true, "True/ResourcesReleased")
	if got := a.live("coown-a"); len(got.OwnerReferences) != 1 || got.OwnerReferences[0].UID != owner.UID {
		t.Errorf("after the removal it is owned by %v", got.OwnerReferences)
	}
}
