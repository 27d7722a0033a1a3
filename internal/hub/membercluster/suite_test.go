package membercluster

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	managerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var (
	// admin may do everything; the controller under test may do what config/rbac/hub lets the hub do.
	admin *rest.Config
	// hubClock is the controller's clock.
	hubClock *clocktesting.FakePassiveClock
	// controller is the one under test, a new one in every test.
	controller *Controller
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(framework.RunWithAPIServer(m, &admin))
}

// hub starts the controller, and stops it when the test ends. It returns a client to play the other parts with.
func hub(t *testing.T) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(admin, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range framework.Manifests(t, "config/rbac/hub") {
		if err := c.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("install the hub's rights: %v", err)
		}
	}
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:fleetwright-system:fleetwright-hub",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:fleetwright-system", "system:authenticated"},
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:     framework.Scheme(),
		Cache:      cache.Options{ByObject: CacheByObject()},
		Metrics:    server.Options{BindAddress: "0"},
		Controller: managerconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	hubClock = clocktesting.NewFakePassiveClock(time.Now())
	controller = &Controller{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: hubClock, Recorder: mgr.GetEventRecorder("test"), Tracker: &consistency.Tracker{},
	}
	if err := controller.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("run the controller: %v", err)
		}
	})
	return c
}

// newMember creates a MemberCluster, whose name ends in random letters so that a test can be repeated, and waits until its
// agent may join.
func newMember(t *testing.T, c client.WithWatch, name string, change func(*clusterv1.MemberCluster)) *clusterv1.MemberCluster {
	t.Helper()
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}}
	if change != nil {
		change(cluster)
	}
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, c, cluster, "is ready to join", func(m *clusterv1.MemberCluster) bool {
		return meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.ConditionReadyToJoin)
	})
	return cluster
}

func internalOf(name string) *clusterv1.InternalMemberCluster {
	return &clusterv1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Namespace: placement.MemberNamespace(name), Name: name}}
}

func leaseOf(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: placement.MemberNamespace(name), Name: clusterv1.HeartbeatLease}}
}

// report plays the agent: it gives an account for the InternalMemberCluster as it is now.
func report(t *testing.T, c client.WithWatch, name, clusterID string, joined metav1.Condition) {
	t.Helper()
	imc := internalOf(name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(imc), imc); err != nil {
		t.Fatal(err)
	}
	conditions := []metav1.Condition{joined, {Type: clusterv1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonHealthy, Message: "ready"}}
	for i := range conditions {
		conditions[i].ObservedGeneration, conditions[i].LastTransitionTime = imc.Generation, metav1.NewTime(hubClock.Now())
	}
	before := imc.DeepCopy()
	imc.Status.ClusterID = clusterID
	imc.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent, Conditions: conditions, LastReceivedHeartbeat: metav1.NewTime(hubClock.Now())}}
	if err := c.Status().Patch(t.Context(), imc, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

var (
	sayJoined = metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAgentJoined, Message: "applies"}
	sayLeft   = metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonAgentLeft, Message: "gone"}
)

// join plays an agent that joins.
func join(t *testing.T, c client.WithWatch, cluster *clusterv1.MemberCluster, clusterID string) {
	t.Helper()
	report(t, c, cluster.Name, clusterID, sayJoined)
	awaitJoined(t, c, cluster, "True/"+clusterv1.ReasonJoined)
}

// renew plays an agent that gives a sign of life.
func renew(t *testing.T, c client.WithWatch, name string) {
	t.Helper()
	lease := leaseOf(name)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease); err != nil {
		t.Fatal(err)
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if err := c.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// wake makes the controller look at a cluster: the tests' clock moves without it noticing.
func wake(t *testing.T, c client.WithWatch, cluster *clusterv1.MemberCluster, why string) {
	t.Helper()
	before := cluster.DeepCopy()
	metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, "test/wake", why)
	if err := c.Patch(t.Context(), cluster, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func awaitJoined(t *testing.T, c client.WithWatch, cluster *clusterv1.MemberCluster, want string) {
	t.Helper()
	framework.Await(t, c, cluster, "has Joined "+want, func(m *clusterv1.MemberCluster) bool {
		return summary(meta.FindStatusCondition(m.Status.Conditions, clusterv1.ConditionJoined)) == want
	})
}

// newWork makes a Work in the cluster's namespace, as the hub would.
func newWork(t *testing.T, c client.WithWatch, cluster, name string) *placementv1.Work {
	t.Helper()
	work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: placement.MemberNamespace(cluster), Name: name, Finalizers: []string{placementv1.FinalizerWorkCleanup},
	}}
	if err := c.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	return work
}

// emptyNamespace plays the namespace controller, which a bare API server lacks: it deletes what is in a namespace that is
// being deleted, waits until that is gone, and lets the namespace go.
func emptyNamespace(t *testing.T, c client.WithWatch, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	framework.Await(t, c, namespace, "is being deleted", func(n *corev1.Namespace) bool { return n.DeletionTimestamp != nil })
	deleteContent(t, c, name)
	for _, list := range contentKinds() {
		for _, item := range contentOf(t, c, name, list) {
			framework.AwaitGone(t, c, item)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Spec.Finalizers = nil
	if err := c.SubResource("finalize").Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
}

func deleteContent(t *testing.T, c client.WithWatch, namespace string) {
	t.Helper()
	for _, list := range contentKinds() {
		for _, item := range contentOf(t, c, namespace, list) {
			if err := client.IgnoreNotFound(c.Delete(t.Context(), item)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func contentKinds() []client.ObjectList {
	return []client.ObjectList{
		&rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &coordinationv1.LeaseList{}, &corev1.ServiceAccountList{},
		&clusterv1.InternalMemberClusterList{}, &placementv1.WorkList{},
	}
}

func contentOf(t *testing.T, c client.WithWatch, namespace string, list client.ObjectList) []client.Object {
	t.Helper()
	if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.(client.Object))
	}
	return slices.Clip(objects)
}
