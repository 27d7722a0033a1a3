package e2e

import (
	"strings"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/quickstart"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// web is a Deployment that the members' nodes can run.
func web(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
}

// placeWeb places a namespace with a Deployment everywhere and waits until it is available.
func placeWeb(t *testing.T, hub client.WithWatch, name string) *placementv1.ClusterResourcePlacement {
	t.Helper()
	create(t, hub, namespace(name))
	create(t, hub, web(name))
	placement := create(t, hub, placeNamespace(name, name, placementv1.RollingUpdateRolloutStrategyType))
	awaitAvailable(t, hub, placement)
	return placement
}

func awaitAvailable(t *testing.T, hub client.WithWatch, placement *placementv1.ClusterResourcePlacement) {
	t.Helper()
	framework.Await(t, hub, placement, "is available everywhere", func(p *placementv1.ClusterResourcePlacement) bool {
		return condition(p.Status.Conditions, "ClusterResourcePlacementAvailable") == "True/ResourceAvailable"
	})
}

// sandbox runs a command of the sandbox on the shared fleet.
func sandbox(t *testing.T, args ...string) {
	t.Helper()
	if err := fleet.Sandbox(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
}

// steadyUID fails the test if the Deployment was deleted or made anew.
func steadyUID(t *testing.T, member client.Client, name string, want *appsv1.Deployment, after string) {
	t.Helper()
	got := web(name)
	if err := member.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatalf("after %s: %v", after, err)
	}
	if got.UID != want.UID || got.DeletionTimestamp != nil {
		t.Errorf("after %s the Deployment has UID %s and is being deleted at %v; it had UID %s", after, got.UID, got.DeletionTimestamp, want.UID)
	}
}

// TestDefinitionOfAppliedWorkDeleted deletes the CRD under the agent's feet. The garbage collector of a real member would
// remove every object whose owner is gone.
func TestDefinitionOfAppliedWorkDeleted(t *testing.T) {
	hub, member := clientFor(t, fleet, "hub"), clientFor(t, fleet, "member1")
	const name = "definition"
	placeWeb(t, hub, name)
	before := web(name)
	framework.Await(t, member, before, "exists", func(*appsv1.Deployment) bool { return true })
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "appliedworks.placement.kubernetes-fleet.io"}}
	if err := member.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, member, crd)
	// The agent has let its objects go, and the garbage collector has no reason to touch them.
	after := web(name)
	framework.Await(t, member, after, "has no owner", func(d *appsv1.Deployment) bool { return len(d.OwnerReferences) == 0 })
	collectGarbage(t, member)
	steadyUID(t, member, name, before, "the definition was deleted")
	// With the definition back, what is there is taken up again in place.
	if err := fleet.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, member, after, "has an owner again", func(d *appsv1.Deployment) bool { return len(d.OwnerReferences) == 1 })
	steadyUID(t, member, name, before, "the definition is back")
}

// collectGarbage waits until the member's garbage collector has been round: an object whose owner does not exist is gone.
func collectGarbage(t *testing.T, member client.WithWatch) {
	t.Helper()
	orphan := configMap("default", "orphan", "")
	orphan.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "00000000-0000-0000-0000-000000000000"}}
	if err := member.Create(t.Context(), orphan); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, member, orphan)
}

// TestHubThatForgot is a hub that lost all it knew of what is placed, as one that was restored from an empty backup, while
// neither it nor the agents ran. Nothing is removed from the members, and a placement that is made again takes over what is
// there.
func TestHubThatForgot(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	const name = "forgot"
	placeWeb(t, hub, name)
	before := map[string]*appsv1.Deployment{}
	for _, cluster := range fleet.Names() {
		before[cluster] = web(name)
		framework.Await(t, clientFor(t, fleet, cluster), before[cluster], "exists", func(*appsv1.Deployment) bool { return true })
	}
	steady := func(after string) {
		t.Helper()
		for cluster, d := range before {
			member := clientFor(t, fleet, cluster)
			collectGarbage(t, member)
			steadyUID(t, member, name, d, after)
		}
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if err := fleet.Up(framework.CleanupContext(t)); err != nil { // so that the other tests have a hub
			t.Errorf("start the hub again: %v", err)
		}
	})
	sandbox(t, "kill", quickstart.HubProcess)
	for _, cluster := range fleet.Names() {
		sandbox(t, "kill", quickstart.AgentProcess+cluster)
	}
	forget(t, hub)
	for _, cluster := range fleet.Names() {
		sandbox(t, "start", quickstart.AgentProcess+cluster)
		// The agent has read its Works by the time it has answered for another one.
		other := create(t, hub, &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: placementv1.MemberNamespacePrefix + cluster, Name: "forgot-other"}})
		framework.Await(t, hub, other, "is answered", func(w *placementv1.Work) bool { return len(w.Status.Conditions) > 0 })
	}
	steady("the hub forgot everything")
	sandbox(t, "start", quickstart.HubProcess)
	placement := create(t, hub, placeNamespace(name, name, placementv1.RollingUpdateRolloutStrategyType))
	awaitAvailable(t, hub, placement)
	steady("the placement was made again")
}

// forget deletes all that the hub has made of placements, and the placements, past all finalizers: nobody is told.
func forget(t *testing.T, hub client.WithWatch) {
	t.Helper()
	var all []client.Object
	for _, list := range []client.ObjectList{
		&placementv1.ClusterResourcePlacementList{}, &placementv1.ClusterResourceBindingList{}, &placementv1.ClusterResourceSnapshotList{},
		&placementv1.ClusterSchedulingPolicySnapshotList{}, &placementv1.WorkList{},
	} {
		if err := hub.List(t.Context(), list); err != nil {
			t.Fatalf("list %T: %v", list, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil || len(items) == 0 {
			t.Fatalf("%T has %d items: %v", list, len(items), err)
		}
		for _, item := range items {
			object, ok := item.(client.Object)
			if !ok {
				t.Fatalf("%T in %T is no object", item, list)
			}
			all = append(all, object)
		}
	}
	// Some of it goes by itself with its owner.
	for _, object := range all {
		patch := `{"metadata":{"finalizers":null}}`
		if _, binding := object.(*placementv1.ClusterResourceBinding); binding {
			patch = `{"metadata":{"finalizers":null},"spec":{"state":"Unscheduled"}}` // no other may be deleted by hand
		}
		if err := client.IgnoreNotFound(hub.Patch(t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch)))); err != nil {
			t.Fatalf("take the finalizers off %T %s: %v", object, object.GetName(), err)
		}
		if err := client.IgnoreNotFound(hub.Delete(t.Context(), object)); err != nil {
			t.Fatalf("delete %T %s: %v", object, object.GetName(), err)
		}
		framework.AwaitGone(t, hub, object)
	}
}

// TestMemberNamespaceDeleted deletes a member's namespace on the hub by accident, and all Works with it.
func TestMemberNamespaceDeleted(t *testing.T) {
	hub, member := clientFor(t, fleet, "hub"), clientFor(t, fleet, "member1")
	const name = "accident"
	placement := placeWeb(t, hub, name)
	before := web(name)
	framework.Await(t, member, before, "exists", func(*appsv1.Deployment) bool { return true })
	ns := namespace("fleet-member-member1")
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
		t.Fatal(err)
	}
	uid := ns.UID
	if err := hub.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, hub, ns, "is made again", func(n *corev1.Namespace) bool { return n.UID != uid && n.DeletionTimestamp == nil })
	work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: name + "-work"}}
	framework.Await(t, hub, work, "is made again and answered", func(w *placementv1.Work) bool {
		return w.DeletionTimestamp == nil && meta.IsStatusConditionTrue(w.Status.Conditions, placementv1.ConditionAvailable)
	})
	awaitAvailable(t, hub, placement)
	steadyUID(t, member, name, before, "its namespace on the hub was deleted")
}

// TestDeadMember cuts a member off in the middle of a run: the run waits for it, says so, and goes on when it is back.
func TestDeadMember(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	labelMembers(t, hub)
	const name = "dead"
	create(t, hub, namespace(name))
	create(t, hub, configMap(name, "test-cm", "value1"))
	create(t, hub, placeNamespace(name, name, placementv1.ExternalRolloutStrategyType))
	create(t, hub, stagingThenCanary(name, time.Second))
	sandbox(t, "kill", "member2-apiserver")
	down := true
	t.Cleanup(func() {
		if !down {
			return
		}
		if err := fleet.Sandbox(framework.CleanupContext(t), "start", "member2-apiserver"); err != nil {
			t.Error(err)
		}
	})
	run := create(t, hub, updateRun(name, name, name, "", placementv1.UpdateRunStateRun))
	framework.Await(t, hub, run, "has started member2", func(r *placementv1.ClusterStagedUpdateRun) bool {
		return len(r.Status.StagesStatus) > 0 && len(r.Status.StagesStatus[0].Clusters[0].Conditions) > 0
	})
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member2"}}
	framework.Await(t, hub, cluster, "is known to be unhealthy", func(m *clusterv1.MemberCluster) bool {
		return len(m.Status.AgentStatus) > 0 && !meta.IsStatusConditionTrue(m.Status.AgentStatus[0].Conditions, clusterv1.ConditionHealthy)
	})
	framework.Await(t, hub, run, "says that it waits for member2, and why", func(r *placementv1.ClusterStagedUpdateRun) bool {
		c := meta.FindStatusCondition(r.Status.Conditions, placementv1.ConditionProgressing)
		return c != nil && strings.Contains(c.Message, "member2") && strings.Contains(c.Message, "unhealthy since")
	})
	if c := condition(run.Status.Conditions, "Succeeded"); c != "" {
		t.Errorf("the run has ended with %s while a cluster does not answer", c)
	}
	sandbox(t, "start", "member2-apiserver")
	down = false
	approve(t, hub, name+"-before-canary")
	awaitRun(t, hub, run, "Succeeded", "True/UpdateRunSucceeded")
}

// TestBadInput is what only the hub can know to be wrong: each is told in a condition, and changes nothing.
func TestBadInput(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	for name, tc := range map[string]struct {
		selector placementv1.ResourceSelector
		want     string
	}{
		"unknown-kind":       {placementv1.ResourceSelector{Group: "example.com", Version: "v1", Kind: "Nothing", Name: "x"}, "Nothing"},
		"namespaced-kind":    {placementv1.ResourceSelector{Version: "v1", Kind: "ConfigMap", Name: "x"}, "ConfigMap"},
		"reserved-namespace": {placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "kube-system"}, "kube-system"},
		"skipped-namespace":  {placementv1.ResourceSelector{Version: "v1", Kind: "Namespace", Name: "skipped"}, "skipped"},
		"never-placed":       {placementv1.ResourceSelector{Version: "v1", Kind: "Node", Name: "x"}, "Node"},
	} {
		t.Run(name, func(t *testing.T) {
			placement := placeNamespace("bad-"+name, "none", placementv1.RollingUpdateRolloutStrategyType)
			placement.Spec.ResourceSelectors = []placementv1.ResourceSelector{tc.selector}
			create(t, hub, placement)
			framework.Await(t, hub, placement, "is refused", func(p *placementv1.ClusterResourcePlacement) bool {
				return condition(p.Status.Conditions, "ClusterResourcePlacementScheduled") == "False/InvalidResourceSelectors"
			})
			c := meta.FindStatusCondition(placement.Status.Conditions, "ClusterResourcePlacementScheduled")
			if !strings.Contains(c.Message, tc.want) || !strings.Contains(c.Message, "resourceSelectors[0]") {
				t.Errorf("the message names neither field nor object: %s", c.Message)
			}
		})
	}
}

// TestLeaveAndRejoin takes a member out and back in: what was placed stays, and is taken up again in place.
func TestLeaveAndRejoin(t *testing.T) {
	hub, member := clientFor(t, fleet, "hub"), clientFor(t, fleet, "member3")
	const name = "leave"
	placement := placeWeb(t, hub, name)
	before := web(name)
	framework.Await(t, member, before, "exists", func(*appsv1.Deployment) bool { return true })
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member3"}}
	if err := hub.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, hub, cluster)
	framework.AwaitGone(t, hub, namespace("fleet-member-member3"))
	collectGarbage(t, member)
	steadyUID(t, member, name, before, "its cluster left")
	if err := fleet.Rejoin(t.Context(), "member3"); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, hub, placement, "is on three clusters again", func(p *placementv1.ClusterResourcePlacement) bool {
		return p.Status.ClusterSummary != nil && p.Status.ClusterSummary.Available == 3
	})
	steadyUID(t, member, name, before, "its cluster joined again")
}
