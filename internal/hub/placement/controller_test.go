package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	controller "github.com/fleetwright/fleetwright/internal/hub/placement"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	external = placementv1.ExternalRolloutStrategyType
	rolling  = placementv1.RollingUpdateRolloutStrategyType
)

func metaEqual(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func TestExternal(t *testing.T) {
	f := newFleet(t, "ext1", "ext2")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: ext}}`)
	f.place("ext", external, namespaceSelector("ext"))
	f.Eventually(f.condition("ext", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
	f.Eventually(f.condition("ext", "RolloutStarted")).WithTimeout(patience).Should(Equal("Unknown/RolloutControlledByExternalController"))
	p := f.placement("ext")
	if p.Generation != 1 || len(p.Status.Conditions) != 2 || len(p.Status.PlacementStatuses) != 2 || p.Status.ObservedResourceIndex != "" {
		t.Errorf("unexpected placement: generation %d, status %+v", p.Generation, p.Status)
	}
	for _, row := range p.Status.PlacementStatuses {
		if got := row.Conditions[1].Message; !strings.Contains(got, "waits for a ClusterStagedUpdateRun") {
			t.Errorf("%s: %s", row.ClusterName, got)
		}
	}
	if got := f.snapshots("ext"); len(got) > 0 {
		t.Errorf("snapshots before the first run: %v", got)
	}
	f.join("ext3") // a member that joins later
	f.Eventually(func() int { return len(f.placement("ext").Status.PlacementStatuses) }).WithTimeout(patience).Should(Equal(3))

	policy := &placementv1.ClusterSchedulingPolicySnapshot{}
	f.Expect(f.Get(t.Context(), client.ObjectKey{Name: "ext-0"}, policy)).To(Succeed())
	if policy.Labels[placementv1.LabelIsLatestSnapshot] != "true" || policy.Labels[placementv1.LabelPolicyIndex] != "0" ||
		len(policy.Spec.PolicyHash) != 64 || policy.OwnerReferences[0].UID != p.UID {
		t.Errorf("unexpected policy snapshot %+v", policy)
	}
	f.edit("ext", func(p *placementv1.ClusterResourcePlacement) {
		p.Spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickAllPlacementType}
	})
	f.Eventually(func() string {
		second := &placementv1.ClusterSchedulingPolicySnapshot{}
		if err := f.Get(t.Context(), client.ObjectKey{Name: "ext-1"}, second); err != nil {
			return err.Error()
		}
		f.Expect(f.Get(t.Context(), client.ObjectKey{Name: "ext-0"}, policy)).To(Succeed())
		return policy.Labels[placementv1.LabelIsLatestSnapshot] + " " + second.Labels[placementv1.LabelIsLatestSnapshot]
	}).WithTimeout(patience).Should(Equal("false true"))
	f.Eventually(f.condition("ext", "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
}

func TestBadSelectors(t *testing.T) {
	f := newFleet(t)
	for name, strategy := range map[string]placementv1.RolloutStrategyType{"bad-external": external, "bad-rolling": rolling} {
		f.place(name, strategy, namespaceSelector("kube-system"))
		f.Eventually(f.condition(name, "Scheduled")).WithTimeout(patience).Should(Equal("False/InvalidResourceSelectors"))
		if got := f.message(name, "Scheduled"); !strings.HasPrefix(got, `The resource selectors are invalid, and nothing new is rolled out until they are corrected: resourceSelectors[0] (v1 Namespace "kube-system"): the namespace is reserved`) {
			t.Errorf("unexpected message %q", got)
		}
		f.edit(name, func(p *placementv1.ClusterResourcePlacement) {
			p.Spec.ResourceSelectors = []placementv1.ResourceSelector{namespaceSelector("nowhere")}
		})
		f.Eventually(f.condition(name, "Scheduled")).WithTimeout(patience).ShouldNot(Equal("False/InvalidResourceSelectors"))
		if got := f.placement(name).Status.Conditions[0].ObservedGeneration; got != 2 {
			t.Errorf("the condition is about generation %d", got)
		}
	}
}

const gadgets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.placement.example.com},
  spec: {group: placement.example.com, scope: Cluster, names: {kind: Gadget, plural: gadgets},
    versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

// TestKindAddedLater: a definition that is installed later needs no restart, under either strategy.
func TestKindAddedLater(t *testing.T) {
	f := newFleet(t, "later1")
	selector := placementv1.ResourceSelector{Group: "placement.example.com", Version: "v1", Kind: "Gadget"}
	f.place("later-external", external, selector)
	f.place("later-rolling", rolling, selector)
	for _, name := range []string{"later-external", "later-rolling"} {
		f.Eventually(f.condition(name, "Scheduled")).WithTimeout(patience).Should(Equal("False/InvalidResourceSelectors"))
	}
	f.apply(gadgets)
	for _, name := range []string{"later-external", "later-rolling"} {
		f.Eventually(f.condition(name, "Scheduled")).WithTimeout(patience).Should(Equal("True/SchedulingPolicyFulfilled"))
	}
	f.Eventually(func() error {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(`{apiVersion: placement.example.com/v1, kind: Gadget, metadata: {name: one}, spec: {size: 3}}`), &o.Object); err != nil {
			return err
		}
		return client.IgnoreAlreadyExists(f.Create(t.Context(), o))
	}).WithTimeout(patience).Should(Succeed())
	f.Eventually(func() int32 { return f.placement("later-rolling").Status.SelectedResourceCount }).WithTimeout(patience).Should(BeEquivalentTo(1))
	f.Eventually(f.condition("later-rolling", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
}

// TestSelectorsThatFindNothing: that nothing is placed for a selector is no failure, but it is said.
func TestSelectorsThatFindNothing(t *testing.T) {
	f := newFleet(t, "none1")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: there}}`)
	labelled := placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "nobody"}}}
	f.place("none", rolling, namespaceSelector("absent"), labelled)
	f.place("some", rolling, namespaceSelector("there"), namespaceSelector("missing"))
	scheduled := func(name string) func() string { return func() string { return f.message(name, "Scheduled") } }
	const all = `; nothing is placed, since nothing on the hub is selected by resourceSelectors[0] (v1 Namespace "absent"), resourceSelectors[1] (v1 Namespace with labels team=nobody): create what they are to select, or correct them`
	f.Eventually(scheduled("none")).WithTimeout(patience).Should(HaveSuffix(all))
	const one = `nothing on the hub is selected by resourceSelectors[1] (v1 Namespace "missing"): create what they are to select, or correct them`
	f.Eventually(scheduled("some")).WithTimeout(patience).Should(HaveSuffix("; " + one))
	for _, name := range []string{"none", "some"} {
		f.Eventually(f.condition(name, "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
		if got := f.condition(name, "Scheduled")(); got != "True/SchedulingPolicyFulfilled" {
			t.Errorf("%s is %s", name, got)
		}
	}
	f.Eventually(func() []string { return f.notesOf("some", controller.EventSelectorsFoundNothing) }).WithTimeout(patience).
		Should(Equal([]string{"N" + one[1:]}))
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: missing}}`)
	f.Eventually(scheduled("some")).WithTimeout(patience).ShouldNot(ContainSubstring("nothing"))
}

func TestRollingUpdate(t *testing.T) {
	f := newFleet(t, "roll1", "roll2", "roll3")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: roll}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: config, namespace: roll}, data: {key: value1}}`)
	// All clusters at once: of one that refuses is told while the others go on.
	everywhere := &placementv1.RollingUpdateConfig{MaxUnavailable: ptr.To(intstr.FromString("100%"))}
	f.placeAs("roll", placementv1.PlacementSpec{
		ResourceSelectors: []placementv1.ResourceSelector{namespaceSelector("roll")},
		Strategy:          placementv1.RolloutStrategy{Type: rolling, RollingUpdate: everywhere},
	})
	f.Eventually(f.condition("roll", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	p := f.placement("roll")
	want := []placementv1.ResourceIdentifier{
		{Version: "v1", Kind: "Namespace", Name: "roll"},
		{Version: "v1", Kind: "ConfigMap", Namespace: "roll", Name: "config"},
	}
	if diff := cmp.Diff(want, p.Status.SelectedResources); diff != "" {
		t.Errorf("unexpected selected resources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&placementv1.ClusterSummary{Selected: 3, Available: 3, ByResourceIndex: []placementv1.ResourceIndexCount{{ResourceIndex: "0", Clusters: 3}}}, p.Status.ClusterSummary); diff != "" {
		t.Errorf("unexpected summary (-want +got):\n%s", diff)
	}
	f.checkSeedSnapshot("roll", "roll", "value1")
	f.Eventually(func() []string { return f.lastAvailable("roll") }).WithTimeout(patience).Should(Equal([]string{"roll-0-snapshot"}))

	// A member that refuses is told of in its own words.
	f.set(func() { f.refuse["roll2"] = "held by somebody" })
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config", Namespace: "roll"}, Data: map[string]string{"key": "value2"}}
	f.Expect(f.Update(t.Context(), cm)).To(Succeed())
	f.Eventually(f.condition("roll", "Applied")).WithTimeout(patience).Should(Equal("False/ApplyFailed"))
	f.Eventually(func() string { return f.placement("roll").Status.ObservedResourceIndex }).WithTimeout(patience).Should(Equal("1"))
	// Its row is the first as soon as the other clusters are done.
	f.Eventually(func() string {
		row := f.placement("roll").Status.PlacementStatuses[0]
		if len(row.FailedPlacements) != 1 {
			return row.ClusterName
		}
		return row.ClusterName + ": " + row.FailedPlacements[0].Condition.Message
	}).WithTimeout(patience).Should(Equal("roll2: held by somebody"))
	f.set(func() { delete(f.refuse, "roll2") })
	f.Eventually(f.condition("roll", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	f.Eventually(func() []string { return f.eventsOf("roll") }).WithTimeout(patience).Should(ContainElement(controller.EventRolloutCompleted))

	// What is deleted on the hub goes with the next revision.
	f.Expect(f.Delete(t.Context(), cm)).To(Succeed())
	f.Eventually(func() []placementv1.ResourceIdentifier { return f.placement("roll").Status.SelectedResources }).WithTimeout(patience).Should(HaveLen(1))

	// A hub that is started anew writes nothing.
	f.Eventually(f.condition("roll", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	f.Eventually(func() []string { return f.lastAvailable("roll") }).WithTimeout(patience).Should(Equal([]string{"roll-2-snapshot"}))
	before := f.versions("roll")
	f.stop()
	f.start()
	f.Consistently(func() string { return cmp.Diff(before, f.versions("roll")) }).WithTimeout(3 * time.Second).Should(BeEmpty())
}

// checkSeedSnapshot compares a snapshot with what the seed prints of one.
func (f *fleet) checkSeedSnapshot(name, namespace, value string) {
	f.t.Helper()
	s := &placementv1.ClusterResourceSnapshot{}
	f.Expect(f.Get(f.t.Context(), client.ObjectKey{Name: name + "-0-snapshot"}, s)).To(Succeed())
	var got []string
	for _, resource := range s.Spec.SelectedResources {
		text, err := yaml.JSONToYAML(resource.Raw)
		f.Expect(err).NotTo(HaveOccurred())
		got = append(got, string(text))
	}
	want := []string{
		fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata:\n  labels:\n    kubernetes.io/metadata.name: %s\n  name: %s\nspec:\n  finalizers:\n  - kubernetes\n", namespace, namespace),
		fmt.Sprintf("apiVersion: v1\ndata:\n  key: %s\nkind: ConfigMap\nmetadata:\n  name: config\n  namespace: %s\n", value, namespace),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("unexpected content (-want +got):\n%s", diff)
	}
}

// lastAvailable is the snapshot that is marked as the last to be available everywhere.
func (f *fleet) lastAvailable(name string) []string {
	f.t.Helper()
	all, err := listing.ResourceSnapshots(f.t.Context(), f, &f.kinds.Carriage, placement.Key{Name: name})
	f.Expect(err).NotTo(HaveOccurred())
	var marked []string
	for _, g := range snapshot.Groups(all) {
		if g.LastAvailable {
			marked = append(marked, g.Master)
		}
	}
	return marked
}

// versions are the resource versions of all that belongs to a placement.
func (f *fleet) versions(name string) map[string]string {
	f.t.Helper()
	versions := map[string]string{"placement": f.placement(name).ResourceVersion}
	resources, err := listing.ResourceSnapshots(f.t.Context(), f, &f.kinds.Carriage, placement.Key{Name: name})
	f.Expect(err).NotTo(HaveOccurred())
	for _, o := range resources {
		versions[o.GetName()] = o.GetResourceVersion()
	}
	policies, err := listing.PolicySnapshots(f.t.Context(), f, f.kinds, placement.Key{Name: name})
	f.Expect(err).NotTo(HaveOccurred())
	for _, o := range policies {
		versions[o.GetName()] = o.GetResourceVersion()
	}
	return versions
}

// eventsOf are the reasons of the events on a placement.
func (f *fleet) eventsOf(name string) []string {
	f.t.Helper()
	var list eventsv1.EventList
	f.Expect(f.List(f.t.Context(), &list)).To(Succeed())
	var reasons []string
	for i := range list.Items {
		if list.Items[i].Regarding.Name == name {
			reasons = append(reasons, list.Items[i].Reason)
		}
	}
	return reasons
}

// TestFolder: objects that are applied one after the other make one revision.
func TestFolder(t *testing.T) {
	f := newFleet(t, "folder1")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: folder}}`)
	f.place("folder", rolling, namespaceSelector("folder"))
	f.Eventually(f.condition("folder", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	for i := range 10 {
		f.apply(fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: folder}}`, i))
	}
	f.Eventually(func() int32 { return f.placement("folder").Status.SelectedResourceCount }).WithTimeout(patience).Should(BeEquivalentTo(11))
	if diff := cmp.Diff([]string{"folder-0-snapshot", "folder-1-snapshot"}, f.snapshots("folder")); diff != "" {
		t.Errorf("unexpected snapshots (-want +got):\n%s", diff)
	}
}

// TestFailingDiscovery: while an API group cannot be discovered, what a namespace holds is not known; nothing changes, and
// the placement says so. When the group is gone all goes on by itself.
func TestFailingDiscovery(t *testing.T) {
	f := newFleet(t, "dead1")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: dead}}`, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: dead}}`)
	f.place("dead", rolling, namespaceSelector("dead"))
	f.Eventually(f.condition("dead", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	f.apply(`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.dead.example.com}, spec: {group: dead.example.com,
	  version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {namespace: default, name: nobody}}}`)
	awaitFailingDiscovery(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "dead"}}
	f.Expect(f.Delete(t.Context(), cm)).To(Succeed())
	f.Eventually(f.condition("dead", "Scheduled")).WithTimeout(patience).Should(Equal("Unknown/ResourceSelectionIncomplete"))
	if got := f.message("dead", "Scheduled"); !strings.Contains(got, "dead.example.com") || !strings.Contains(got, "nothing changes in the clusters") {
		t.Errorf("unexpected message %q", got)
	}
	if got := f.snapshots("dead"); len(got) != 1 {
		t.Errorf("snapshots %v", got)
	}
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName("v1.dead.example.com")
	f.Expect(f.Delete(t.Context(), service)).To(Succeed())
	f.Eventually(func() int32 { return f.placement("dead").Status.SelectedResourceCount }).WithTimeout(patience).Should(BeEquivalentTo(1))
	f.Eventually(f.condition("dead", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
}

// TestLatestDeletedByHand: where clusters follow the latest revision, they do not go back when somebody deletes it.
func TestLatestDeletedByHand(t *testing.T) {
	f := newFleet(t, "hand1")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: hand}}`)
	f.place("hand", rolling, namespaceSelector("hand"))
	f.Eventually(f.condition("hand", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	f.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: hand}}`)
	f.Eventually(func() string { return f.placement("hand").Status.ObservedResourceIndex }).WithTimeout(patience).Should(Equal("1"))
	f.Eventually(f.condition("hand", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	latest := &placementv1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "hand-1-snapshot"}}
	f.Expect(f.Delete(t.Context(), latest)).To(Succeed())
	f.Eventually(func() []string { return f.snapshots("hand") }).WithTimeout(patience).Should(Equal([]string{"hand-0-snapshot", "hand-2-snapshot"}))
	f.Eventually(func() string { return f.placement("hand").Status.ObservedResourceIndex }).WithTimeout(patience).Should(Equal("2"))
	f.Eventually(f.condition("hand", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	if got := f.placement("hand").Status.SelectedResourceCount; got != 2 {
		t.Errorf("%d objects are selected, want 2", got)
	}
	old := &placementv1.ClusterResourceSnapshot{}
	f.Expect(f.Get(t.Context(), client.ObjectKey{Name: "hand-0-snapshot"}, old)).To(Succeed())
	if old.Labels[placementv1.LabelIsLatestSnapshot] != "false" {
		t.Error("the older revision became the latest")
	}
}

// TestFewStatusWrites: however often clusters change, the status is written at most once in a while.
func TestFewStatusWrites(t *testing.T) {
	const clusters = 12
	var members []string
	for i := range clusters {
		members = append(members, fmt.Sprintf("few%d", i))
	}
	f := newFleet(t, members...)
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: few}}`)
	begin := time.Now()
	f.place("few", rolling, namespaceSelector("few"))
	w, err := f.Watch(t.Context(), &placementv1.ClusterResourcePlacementList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: f.placement("few").ResourceVersion}})
	f.Expect(err).NotTo(HaveOccurred())
	defer w.Stop()
	f.Eventually(f.condition("few", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	for _, member := range members {
		f.set(func() { f.refuse[member] = "no" })
	}
	f.Eventually(func() int32 { return f.placement("few").Status.ClusterSummary.Failed }).WithTimeout(patience).Should(BeEquivalentTo(clusters))
	last := f.placement("few").ResourceVersion
	writes := 0
	for event := range w.ResultChan() {
		p, ok := event.Object.(*placementv1.ClusterResourcePlacement)
		if !ok || p.Name != "few" {
			continue
		}
		writes++
		if p.ResourceVersion == last {
			break
		}
	}
	// One more for the first, and one for the finalizer.
	if most := int(time.Since(begin)/(250*time.Millisecond)) + 2; writes > most {
		t.Errorf("%d writes in %s, want at most %d", writes, time.Since(begin), most)
	}
}

func TestDeletion(t *testing.T) {
	f := newFleet(t, "del1", "del2")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: del}}`)
	f.place("del", rolling, namespaceSelector("del"))
	f.Eventually(f.condition("del", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	f.set(func() { f.away["del2"] = true })
	f.Expect(f.Delete(t.Context(), f.placement("del"))).To(Succeed())
	f.Eventually(f.condition("del", "Removed")).WithTimeout(patience).Should(Equal("False/RemovalInProgress"))
	f.Eventually(func() string { return f.message("del", "Removed") }).WithTimeout(patience).Should(
		Equal("Waiting for 1 cluster(s) to remove what was placed there: del2"))
	if got := f.condition("del", "Available")(); got != "" {
		t.Errorf("Available is still %s", got)
	}
	if got := f.snapshots("del"); len(got) != 1 {
		t.Errorf("snapshots went before the bindings: %v", got)
	}
	f.set(func() { delete(f.away, "del2") })
	f.Eventually(func() error {
		return f.Get(t.Context(), client.ObjectKey{Name: "del"}, &placementv1.ClusterResourcePlacement{})
	}).WithTimeout(patience).Should(Satisfy(apierrors.IsNotFound))
	policies, err := listing.PolicySnapshots(framework.CleanupContext(t), f, f.kinds, placement.Key{Name: "del"})
	f.Expect(err).NotTo(HaveOccurred())
	bindings, err := listing.Bindings(framework.CleanupContext(t), f, &f.kinds.Carriage, placement.Key{Name: "del"})
	f.Expect(err).NotTo(HaveOccurred())
	if len(policies)+len(bindings)+len(f.snapshots("del")) > 0 {
		t.Errorf("left behind: %d policy snapshots, %d bindings, %v", len(policies), len(bindings), f.snapshots("del"))
	}
}

// TestOrphanedWork: what was placed by way of a binding that somebody deleted is removed with its placement all the same.
func TestOrphanedWork(t *testing.T) {
	f := newFleet(t, "lost1")
	f.apply(`{apiVersion: v1, kind: Namespace, metadata: {name: lost}}`)
	f.place("lost", rolling, namespaceSelector("lost"))
	f.Eventually(f.condition("lost", "Available")).WithTimeout(patience).Should(Equal("True/ResourceAvailable"))
	// Nobody empties namespaces here, so this one stays.
	f.Expect(client.IgnoreAlreadyExists(f.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace("lost1")}}))).To(Succeed())
	work := func(name string, uid types.UID) *placementv1.Work {
		w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: placement.MemberNamespace("lost1"), Name: name, Annotations: map[string]string{placementv1.AnnotationPlacementUID: string(uid)},
			Labels: map[string]string{placementv1.LabelParentPlacement: "lost", placementv1.LabelParentBinding: name},
		}}
		f.create(w)
		return w
	}
	orphan := work("lost-orphan", f.placement("lost").UID)
	work("lost-before", "another-placement-of-that-name")
	f.set(func() { f.away["lost1"] = true })
	f.Expect(f.Delete(t.Context(), f.placement("lost"))).To(Succeed())
	f.set(func() { delete(f.away, "lost1") })
	b := &placementv1.ClusterResourceBinding{}
	f.Eventually(func() error { return f.Get(t.Context(), client.ObjectKey{Name: "lost-orphan"}, b) }).WithTimeout(patience).Should(Succeed())
	if b.Spec.TargetCluster != "lost1" || b.Spec.State != placementv1.BindingStateUnscheduled || b.Annotations[placementv1.AnnotationPlacementUID] != string(f.placement("lost").UID) {
		t.Errorf("the binding for the Work is %+v", b.Spec)
	}
	f.Expect(f.Delete(t.Context(), orphan)).To(Succeed()) // as the controller of Works does
	f.Eventually(func() error {
		return f.Get(t.Context(), client.ObjectKey{Name: "lost"}, &placementv1.ClusterResourcePlacement{})
	}).WithTimeout(patience).Should(Satisfy(apierrors.IsNotFound))
	if err := f.Get(t.Context(), client.ObjectKey{Name: "lost-before"}, &placementv1.ClusterResourceBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("a binding is made for the Work of another placement: %v", err)
	}
}

// TestOrphanedBinding: a binding that the scheduler made when the placement had just gone is removed; one through which
// something was placed is not.
func TestOrphanedBinding(t *testing.T) {
	f := newFleet(t)
	bind := func(cluster string, state placementv1.BindingState, snapshot string) *placementv1.ClusterResourceBinding {
		b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
			Name: "orphan-" + cluster, Labels: map[string]string{placementv1.LabelParentPlacement: "orphan"},
			Annotations: map[string]string{placementv1.AnnotationPlacementUID: "gone"},
		}}
		b.Spec = placementv1.ResourceBindingSpec{State: state, TargetCluster: cluster, ResourceSnapshotName: snapshot, SchedulingPolicySnapshotName: "orphan-0",
			ClusterDecision: placementv1.ClusterDecision{ClusterName: cluster, Selected: true, Reason: "picked"}}
		f.create(b)
		return b
	}
	placed := bind("a", placementv1.BindingStateBound, "orphan-0-snapshot")
	fresh := bind("b", placementv1.BindingStateScheduled, "")
	f.Eventually(func() error { return f.Get(t.Context(), client.ObjectKeyFromObject(fresh), fresh) }).WithTimeout(patience).Should(Satisfy(apierrors.IsNotFound))
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(placed), placed); err != nil || !placed.DeletionTimestamp.IsZero() {
		t.Errorf("a binding through which something was placed: %v, deleted %v", err, placed.DeletionTimestamp)
	}
}

// notesOf are the notes of the events with a reason on a placement.
func (f *fleet) notesOf(name, reason string) []string {
	f.t.Helper()
	var list eventsv1.EventList
	f.Expect(f.List(f.t.Context(), &list)).To(Succeed())
	var notes []string
	for i := range list.Items {
		if list.Items[i].Regarding.Name == name && list.Items[i].Reason == reason {
			notes = append(notes, list.Items[i].Note)
		}
	}
	return notes
}
