package division

import (
	"os"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule/ledger"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// hubConfig leads to the API server that the tests share.
var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// unchanged are objects on the hub that do not change.
type unchanged struct{}

func (unchanged) AddFollower(selection.Follower) {}

// fixture is one claimed ConfigMap, and the hub's controller at work on it.
type fixture struct {
	*framework.Hub
	t *testing.T
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Hub: framework.NewHub(t, hubConfig), t: t}
	f.Run(cache.Options{}, func(mgr ctrl.Manager) error {
		carriage := placement.ObjectCarriages()[1]
		c := &Controller{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Carriage: carriage, Clock: clock.RealClock{}, Changes: unchanged{}, Ledger: &ledger.Ledger{},
			Recorder:  events.NewFakeRecorder(100),
			Snapshots: &snapshots.Store{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Carriage: carriage}}
		return c.SetupWithManager(mgr)
	})
	return f
}

// join makes a member that has joined and is healthy.
func (f *fixture) join(short string, labels map[string]string) {
	f.t.Helper()
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster(short), Labels: labels}}
	f.Make(m)
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonJoined})
	agent := clusterv1.AgentStatus{Type: clusterv1.MemberAgent, LastReceivedHeartbeat: metav1.Now()}
	meta.SetStatusCondition(&agent.Conditions, metav1.Condition{Type: clusterv1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonHealthy})
	m.Status.AgentStatus = []clusterv1.AgentStatus{agent}
	if err := f.Status().Update(f.t.Context(), m); err != nil {
		f.t.Fatalf("have %s join: %v", m.Name, err)
	}
}

// claim makes a ConfigMap and its internal placement.
func (f *fixture) claim(policyKind string, change func(*policyv1alpha1.ObjectPlacementSpec)) *policyv1alpha1.ObjectPlacement {
	f.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f.Name, Labels: map[string]string{"app": f.Name}}}
	f.Make(o)
	p := &policyv1alpha1.ObjectPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f.Name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: o.Name, UID: o.UID}}}}
	p.Spec.Resource = policyv1alpha1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: o.Name}
	p.Spec.Policy = &policyv1alpha1.PolicyReference{Kind: policyKind, Name: "p"}
	p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{f.Cluster("east"), f.Cluster("west")}}
	change(&p.Spec)
	f.Make(p)
	return p
}

// scheduled waits until what was decided is "status/reason", and returns what is said of it.
func (f *fixture) scheduled(p *policyv1alpha1.ObjectPlacement, want string) string {
	f.t.Helper()
	message := ""
	framework.Await(f.t, f, p, "is "+want, func(p *policyv1alpha1.ObjectPlacement) bool {
		c := meta.FindStatusCondition(p.Status.Conditions, policyv1alpha1.ConditionScheduled)
		if c == nil || string(c.Status)+"/"+c.Reason != want || c.ObservedGeneration != p.Generation {
			return false
		}
		message = c.Message
		return true
	})
	return message
}

func (f *fixture) bindings() []placementv1.ResourceBinding {
	f.t.Helper()
	var list, own placementv1.ResourceBindingList
	if err := f.List(f.t.Context(), &list); err != nil {
		f.t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Labels[placementv1.LabelParentObject] == f.Name {
			own.Items = append(own.Items, list.Items[i])
		}
	}
	return own.Items
}
