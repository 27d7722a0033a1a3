package placement_test

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestStrippedPolicySnapshot: a policy snapshot that lost a label by hand gets it back.
func TestStrippedPolicySnapshot(t *testing.T) {
	f := newFleet(t, "stripped1")
	f.place("stripped", external, namespaceSelector("nowhere"))
	f.Eventually(f.condition("stripped", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
	read := func() *placementv1.ClusterSchedulingPolicySnapshot {
		s := &placementv1.ClusterSchedulingPolicySnapshot{}
		f.Expect(f.Get(t.Context(), client.ObjectKey{Name: "stripped-0"}, s)).To(Succeed())
		return s
	}
	for key, value := range map[string]string{placementv1.LabelParentPlacement: "stripped", placementv1.LabelPolicyIndex: "0"} {
		s := read()
		before := s.DeepCopy()
		delete(s.Labels, key)
		f.Expect(f.Patch(t.Context(), s, client.MergeFrom(before))).To(Succeed())
		f.edit("stripped", func(p *placementv1.ClusterResourcePlacement) {
			metav1.SetMetaDataLabel(&p.ObjectMeta, "touched-for", value)
		})
		f.Eventually(func() string { return read().Labels[key] }).WithTimeout(patience).Should(Equal(value))
	}
	f.Eventually(f.condition("stripped", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
}

// TestPolicySnapshotOfSomebodyElse: an object that is in the way is named, and left alone.
func TestPolicySnapshotOfSomebodyElse(t *testing.T) {
	f := newFleet(t, "way1")
	stranger := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: "way-0"}}
	stranger.Spec.PolicyHash = []byte("x")
	f.create(stranger)
	f.place("way", external, namespaceSelector("nowhere"))
	f.Eventually(f.condition("way", "Scheduled")).WithTimeout(patience).Should(Equal("Unknown/SchedulePending"))
	f.Eventually(func() string { return f.message("way", "Scheduled") }).WithTimeout(patience).Should(Equal("Scheduling waits, and nothing changes in the clusters: " +
		"ClusterSchedulingPolicySnapshot way-0 was not made for this placement, and has the name that the snapshot of its policy is to have: delete it"))
	f.Expect(f.Delete(t.Context(), stranger)).To(Succeed())
	f.Eventually(f.condition("way", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
}

// TestUnreadableSnapshot: a status that could not tell what is selected tells it as soon as that can be read, though nothing
// else happens.
func TestUnreadableSnapshot(t *testing.T) {
	f := newFleet(t, "unread1")
	f.unreadable.Store(true)
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: unread}}`)
	f.place("unread", rolling, namespaceSelector("unread"))
	f.Eventually(f.condition("unread", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	if p := f.placement("unread"); p.Status.ObservedResourceIndex != "" || p.Status.SelectedResourceCount != 0 {
		t.Errorf("the status tells of resource snapshot %q with %d objects", p.Status.ObservedResourceIndex, p.Status.SelectedResourceCount)
	}
	f.unreadable.Store(false)
	f.Eventually(func() int32 { return f.placement("unread").Status.SelectedResourceCount }).WithTimeout(patience).Should(BeEquivalentTo(1))
	f.Eventually(func() []string { return f.lastAvailable("unread") }).WithTimeout(patience).Should(Equal([]string{"unread-0-snapshot"}))
}
