package clusterprofile_test

import (
	"context"
	"os"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	inventoryv1alpha1 "github.com/fleetwright/fleetwright/api/inventory/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/clusterprofile"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// profiles is the namespace of the profiles, which nobody made.
const profiles = "profiles"

func startHub(t *testing.T) *framework.Hub {
	t.Helper()
	hub := framework.NewHub(t, hubConfig)
	hub.Run(cache.Options{ByObject: clusterprofile.CacheByObject(profiles)}, func(mgr ctrl.Manager) error {
		c := &clusterprofile.Controller{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: clock.RealClock{}, Namespace: profiles}
		return c.SetupWithManager(mgr)
	})
	return hub
}

// join makes a cluster whose agent has joined, or has not.
func join(t *testing.T, hub client.Client, name string, joined metav1.ConditionStatus) *clusterv1.MemberCluster {
	t.Helper()
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := hub.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(hub.Delete(framework.CleanupContext(t), cluster)); err != nil {
			t.Error(err)
		}
	})
	report(t, hub, cluster, joined, metav1.ConditionTrue)
	return cluster
}

// report plays the controller of MemberClusters.
func report(t *testing.T, hub client.Client, cluster *clusterv1.MemberCluster, joined, healthy metav1.ConditionStatus) {
	t.Helper()
	now := metav1.Now()
	meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionJoined, Status: joined, Reason: "R", Message: "m"})
	cluster.Status.ResourceUsage.ObservationTime = now
	cluster.Status.Properties = map[string]clusterv1.PropertyValue{clusterv1.KubernetesVersionProperty: {Value: "v1.37.2", ObservationTime: now}}
	cluster.Status.AgentStatus = []clusterv1.AgentStatus{{
		Type: clusterv1.MemberAgent, LastReceivedHeartbeat: now,
		Conditions: []metav1.Condition{{Type: clusterv1.ConditionHealthy, Status: healthy, Reason: "R", Message: "m", LastTransitionTime: now}},
	}}
	if err := hub.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
}

func profileOf(name string) *inventoryv1alpha1.ClusterProfile {
	return &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: profiles, Name: name}}
}

func healthIs(want string) func(*inventoryv1alpha1.ClusterProfile) bool {
	return func(p *inventoryv1alpha1.ClusterProfile) bool {
		c := meta.FindStatusCondition(p.Status.Conditions, inventoryv1alpha1.ConditionControlPlaneHealthy)
		return c != nil && string(c.Status)+"/"+c.Reason == want
	}
}

func TestProfileFollowsItsCluster(t *testing.T) {
	hub := startHub(t)
	name := hub.Name + "-paris"
	cluster := join(t, hub, name, metav1.ConditionTrue)
	p := profileOf(name)
	framework.Await(t, hub, p, "is healthy", healthIs("True/MemberClusterAPIServerHealthy"))
	if p.Spec.DisplayName != name || p.Spec.ClusterManager.Name != "fleetwright" || p.Labels["x-k8s.io/cluster-manager"] != "fleetwright" ||
		p.Status.Version.Kubernetes != "v1.37.2" || len(p.Status.Properties) != 1 || len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != cluster.UID {
		t.Errorf("the profile is %+v", p)
	}
	report(t, hub, cluster, metav1.ConditionTrue, metav1.ConditionFalse)
	framework.Await(t, hub, p, "is not healthy", healthIs("False/MemberClusterAPIServerUnhealthy"))

	// What somebody changes is put back, and what somebody deletes is made again.
	before := p.DeepCopy()
	p.Spec.DisplayName, p.Labels = "rome", map[string]string{"team": "a"}
	if err := hub.Patch(t.Context(), p, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, hub, p, "is put back", func(p *inventoryv1alpha1.ClusterProfile) bool {
		return p.Spec.DisplayName == name && p.Labels["x-k8s.io/cluster-manager"] == "fleetwright" && p.Labels["team"] == "a"
	})
	first := p.UID
	if err := hub.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, hub, p, "is made again", func(p *inventoryv1alpha1.ClusterProfile) bool { return p.UID != first })
	// There is no garbage collector here: the hub itself takes it away.
	if err := hub.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, hub, p)
}

// TestProfilesOfOthers: a profile by another cluster manager is left alone, and a cluster that never joined has none.
func TestProfilesOfOthers(t *testing.T) {
	hub := startHub(t)
	last := join(t, hub, hub.Name+"-a", metav1.ConditionTrue) // with it there is a namespace
	framework.Await(t, hub, profileOf(last.Name), "is there", func(*inventoryv1alpha1.ClusterProfile) bool { return true })
	theirs := profileOf(hub.Name + "-theirs")
	theirs.Spec = inventoryv1alpha1.ClusterProfileSpec{DisplayName: "d", ClusterManager: inventoryv1alpha1.ClusterManager{Name: "other"}}
	if err := hub.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	join(t, hub, theirs.Name, metav1.ConditionTrue)
	newcomer := join(t, hub, hub.Name+"-newcomer", metav1.ConditionUnknown)
	report(t, hub, last, metav1.ConditionTrue, metav1.ConditionFalse)
	framework.Await(t, hub, profileOf(last.Name), "follows", healthIs("False/MemberClusterAPIServerUnhealthy"))
	got := profileOf(theirs.Name)
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil || got.ResourceVersion != theirs.ResourceVersion {
		t.Errorf("another manager's profile is now %+v, error %v", got, err)
	}
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: profiles, Name: newcomer.Name}, got); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a cluster that has not joined has a profile, or: %v", err)
	}
	if err := hub.Delete(context.WithoutCancel(t.Context()), theirs); err != nil {
		t.Error(err)
	}
}
