package placement_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shareIn makes a placement of a namespace whose status is read there.
func (f *fleet) shareIn(name, namespace string, selector placementv1.ResourceSelector) {
	f.t.Helper()
	p := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.ResourceSelectors = []placementv1.ResourceSelector{selector}
	p.Spec.StatusReportingScope = placementv1.StatusReportingNamespaceAccessible
	f.create(p)
	f.t.Cleanup(func() { // what it shares goes with it: there is no garbage collector here
		ctx := framework.CleanupContext(f.t)
		if err := f.Delete(ctx, p); client.IgnoreNotFound(err) != nil {
			f.t.Error(err)
		}
		for _, o := range []client.Object{p, copyOf(namespace, name)} {
			f.Eventually(func() error { return f.Get(ctx, client.ObjectKeyFromObject(o), o) }).WithTimeout(patience).Should(Satisfy(apierrors.IsNotFound), "%T", o)
		}
	})
}

func copyOf(namespace, name string) *placementv1.ClusterResourcePlacementStatus {
	return &placementv1.ClusterResourcePlacementStatus{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// copied tells whether a copy says what its placement says, apart from whether there is a copy.
func (f *fleet) copied(namespace, name string) func() string {
	return func() string {
		c := copyOf(namespace, name)
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err.Error()
		}
		p := f.placement(name)
		if meta.FindStatusCondition(c.SourceStatus.Conditions, "ClusterResourcePlacementStatusSynced") != nil {
			return "it says something of itself"
		}
		meta.RemoveStatusCondition(&p.Status.Conditions, "ClusterResourcePlacementStatusSynced")
		if !metaEqual(p.Status, c.SourceStatus) || c.LastUpdatedTime.IsZero() || !metav1.IsControlledBy(c, p) {
			return "it differs"
		}
		return ""
	}
}

func TestStatusIsSharedWithTheNamespace(t *testing.T) {
	f := newFleet(t, "shared1")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: shared}}`, `{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}`)
	f.shareIn("shared", "shared", namespaceSelector("shared"))
	f.Eventually(f.condition("shared", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	f.Eventually(f.condition("shared", "StatusSynced")).WithTimeout(patience).Should(Equal("True/StatusSyncSucceeded"))
	f.Expect(f.message("shared", "StatusSynced")).To(Equal("Successfully created or updated ClusterResourcePlacementStatus in namespace 'shared'"))
	f.Eventually(f.copied("shared", "shared")).WithTimeout(patience).Should(BeEmpty())

	// A new state arrives there, what somebody writes there is put back, and what somebody deletes is made again.
	f.set(func() { f.refuse["shared1"] = "no room" })
	f.Eventually(f.condition("shared", "Applied")).WithTimeout(patience).Should(Equal("False/ApplyFailed"))
	f.Eventually(f.copied("shared", "shared")).WithTimeout(patience).Should(BeEmpty())
	forged := copyOf("shared", "shared")
	f.Expect(f.Get(t.Context(), client.ObjectKeyFromObject(forged), forged)).To(Succeed())
	forged.SourceStatus.ObservedResourceIndex = "99"
	f.Expect(f.Update(t.Context(), forged)).To(Succeed())
	f.Eventually(f.copied("shared", "shared")).WithTimeout(patience).Should(BeEmpty())
	f.Expect(f.Delete(t.Context(), copyOf("shared", "shared"))).To(Succeed())
	f.Eventually(f.copied("shared", "shared")).WithTimeout(patience).Should(BeEmpty())

	// Another namespace would leave those in this one with a status that tells them nothing any more.
	f.edit("shared", func(p *placementv1.ClusterResourcePlacement) { p.Spec.ResourceSelectors[0].Name = "elsewhere" })
	f.Eventually(f.condition("shared", "Scheduled")).WithTimeout(patience).Should(Equal("False/InvalidResourceSelectors"))
	f.Expect(f.message("shared", "Scheduled")).To(ContainSubstring("namespace resource selector is choosing a different namespace 'elsewhere' from what was originally picked 'shared'. " +
		"This is not allowed for NamespaceAccessible ClusterResourcePlacement"))
	f.Eventually(f.copied("shared", "shared")).WithTimeout(patience).Should(BeEmpty())
	f.edit("shared", func(p *placementv1.ClusterResourcePlacement) { p.Spec.ResourceSelectors[0].Name = "shared" })
	f.Eventually(f.condition("shared", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
}

// TestStatusThatCannotBeShared: the placement says why, goes on all the same, and shares its status once that can be.
func TestStatusThatCannotBeShared(t *testing.T) {
	f := newFleet(t, "unshared1")
	f.shareIn("unshared", "unshared", namespaceSelector("unshared"))
	f.Eventually(f.condition("unshared", "StatusSynced")).WithTimeout(patience).Should(Equal("False/StatusSyncFailed"))
	f.Expect(f.message("unshared", "StatusSynced")).To(HavePrefix("Failed to create or update ClusterResourcePlacementStatus: make it in namespace unshared: "))
	f.Eventually(f.condition("unshared", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
	// One that somebody made under its name makes way.
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: unshared}}`)
	f.Eventually(f.copied("unshared", "unshared")).WithTimeout(patience).Should(BeEmpty())

	labelled := placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"share": "me"}}}
	f.shareIn("nameless", "unshared", labelled)
	f.Eventually(f.condition("nameless", "StatusSynced")).WithTimeout(patience).Should(Equal("False/StatusSyncFailed"))
	f.Expect(f.message("nameless", "StatusSynced")).To(ContainSubstring("select the namespace by name"))

	stranger := copyOf("unshared", "late")
	stranger.LastUpdatedTime = metav1.Now()
	f.Expect(f.Create(t.Context(), stranger)).To(Succeed())
	f.shareIn("late", "unshared", namespaceSelector("unshared"))
	f.Eventually(f.copied("unshared", "late")).WithTimeout(patience).Should(BeEmpty())
}

// TestStatusThatIsHeld: a copy that somebody deleted, and that another's finalizer holds, is told of and waited for, and the
// placement's own status goes on meanwhile.
func TestStatusThatIsHeld(t *testing.T) {
	f := newFleet(t, "held1")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: held}}`)
	f.shareIn("held", "held", namespaceSelector("held"))
	f.Eventually(f.copied("held", "held")).WithTimeout(patience).Should(BeEmpty())
	hold := func(finalizers string) {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":`+finalizers+`}}`))
		f.Expect(f.Patch(framework.CleanupContext(t), copyOf("held", "held"), patch)).To(Succeed())
	}
	hold(`["example.com/archive"]`)
	f.Expect(f.Delete(t.Context(), copyOf("held", "held"))).To(Succeed())
	f.Eventually(f.condition("held", "StatusSynced")).WithTimeout(patience).Should(Equal("False/StatusSyncFailed"))
	f.Expect(f.message("held", "StatusSynced")).To(ContainSubstring("finalizer example.com/archive"))
	f.set(func() { f.refuse["held1"] = "no room" })
	f.Eventually(f.condition("held", "Applied")).WithTimeout(patience).Should(Equal("False/ApplyFailed"))
	hold(`null`)
	f.Eventually(f.condition("held", "StatusSynced")).WithTimeout(patience).Should(Equal("True/StatusSyncSucceeded"))
	f.Eventually(f.copied("held", "held")).WithTimeout(patience).Should(BeEmpty())
}

// TestSharedStatusWhileDeleted: those who read it in the namespace are told what a deleted placement waits for. Once somebody has
// removed it there, it is not made again.
func TestSharedStatusWhileDeleted(t *testing.T) {
	f := newFleet(t, "sharedgone1")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: sharedgone}}`)
	f.shareIn("sharedgone", "sharedgone", namespaceSelector("sharedgone"))
	f.Eventually(f.condition("sharedgone", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	f.Eventually(f.copied("sharedgone", "sharedgone")).WithTimeout(patience).Should(BeEmpty())
	f.set(func() { f.away["sharedgone1"] = true })
	f.Expect(f.Delete(t.Context(), f.placement("sharedgone"))).To(Succeed())
	f.Eventually(f.condition("sharedgone", placementv1.ConditionRemoved)).WithTimeout(patience).Should(Equal("False/" + placementv1.ReasonRemovalInProgress))
	f.Eventually(f.copied("sharedgone", "sharedgone")).WithTimeout(patience).Should(BeEmpty())
	f.Expect(f.condition("sharedgone", "StatusSynced")()).To(Equal("True/StatusSyncSucceeded"))

	f.Expect(f.Delete(t.Context(), copyOf("sharedgone", "sharedgone"))).To(Succeed())
	f.Eventually(f.condition("sharedgone", "StatusSynced")).WithTimeout(patience).Should(BeEmpty())
	err := f.Get(t.Context(), client.ObjectKeyFromObject(copyOf("sharedgone", "sharedgone")), copyOf("sharedgone", "sharedgone"))
	f.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the copy was made again: %v", err)
	f.set(func() { delete(f.away, "sharedgone1") })
}
