package scheduler

import (
	"fmt"
	"os"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hubConfig leads to the API server that the tests share. They run one after the other, and each leaves nothing behind.
var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// fixture is a fleet, and one placement in it, with a hub that runs the scheduler alone.
type fixture struct {
	*framework.Hub
	t    *testing.T
	asks *placementv1.PlacementPolicy // the policy of snapshots
}

func newFixture(t *testing.T, clusters ...string) *fixture {
	t.Helper()
	return newFixtureFor(t, nil, clusters...)
}

// newFixtureFor is newFixture for a placement with a policy.
func newFixtureFor(t *testing.T, policy *placementv1.PlacementPolicy, clusters ...string) *fixture {
	t.Helper()
	f := &fixture{Hub: framework.NewHub(t, hubConfig), t: t, asks: policy}
	for _, c := range clusters {
		f.join(c)
	}
	f.place()
	f.Run(cache.Options{}, func(mgr ctrl.Manager) error {
		c := &Controller{Client: f.Writes.Count(mgr.GetClient()), Kinds: placement.ClusterKinds(), Clock: clock.RealClock{}}
		return c.SetupWithManager(mgr)
	})
	return f
}

// join makes a member that has joined and is healthy. What follows an @ in its name is its region.
func (f *fixture) join(short string) {
	f.t.Helper()
	name, label, _ := strings.Cut(short, "@")
	short = name
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster(short), Finalizers: []string{clusterv1.FinalizerMemberCluster}}}
	if label != "" {
		m.Labels = map[string]string{"region": label}
	}
	f.Make(m)
	f.t.Cleanup(func() { f.Erase(m) })
	f.health(short, metav1.ConditionTrue, clusterv1.ReasonHealthy)
}

func (f *fixture) member(short string) *clusterv1.MemberCluster {
	return &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster(short)}}
}

// health has the agent say how its cluster is; each time it gives a sign of life as well.
func (f *fixture) health(short string, status metav1.ConditionStatus, reason string) {
	f.t.Helper()
	m := f.member(short)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		joined := metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonJoined}
		if reason == clusterv1.ReasonHeartbeatLost { // as the hub writes it
			joined.Status, joined.Reason, joined.Message = metav1.ConditionUnknown, clusterv1.ReasonJoinStateUnknown, "no sign of life"
		}
		meta.SetStatusCondition(&m.Status.Conditions, joined)
		if len(m.Status.AgentStatus) == 0 {
			m.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent}}
		}
		agent := &m.Status.AgentStatus[0]
		agent.LastReceivedHeartbeat = metav1.Now()
		meta.SetStatusCondition(&agent.Conditions, metav1.Condition{Type: clusterv1.ConditionHealthy, Status: status, Reason: reason})
		return f.Status().Update(f.t.Context(), m)
	})
	if err != nil {
		f.t.Fatalf("set the health of %s: %v", short, err)
	}
}

// place makes the placement and its first policy snapshot.
func (f *fixture) place() {
	f.t.Helper()
	p := f.Place("")
	f.policy(0, "1")
	f.t.Cleanup(func() {
		f.Erase(p)
		for _, b := range f.bindings() {
			f.Erase(&b)
		}
		ctx := framework.CleanupContext(f.t)
		if err := f.DeleteAllOf(ctx, &placementv1.ClusterSchedulingPolicySnapshot{}, client.MatchingLabels{placementv1.LabelParentPlacement: f.Name}); err != nil {
			f.t.Errorf("delete policy snapshots: %v", err)
		}
	})
}

// policy makes a policy snapshot that is the latest.
func (f *fixture) policy(index int, generation string) *placementv1.ClusterSchedulingPolicySnapshot {
	f.t.Helper()
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: f.Owned(placement.PolicySnapshotName(f.Name, index))}
	s.Labels[placementv1.LabelIsLatestSnapshot], s.Labels[placementv1.LabelPolicyIndex] = "true", fmt.Sprint(index)
	s.Annotations[placementv1.AnnotationPlacementGeneration] = generation
	s.Spec.PolicyHash = []byte("hash")
	if s.Spec.Policy = f.asks.DeepCopy(); f.asks.Type() == placementv1.PickNPlacementType {
		s.Annotations[placementv1.AnnotationNumberOfClusters] = fmt.Sprint(*f.asks.NumberOfClusters)
		s.Spec.Policy.NumberOfClusters = nil
	}
	f.Make(s)
	return s
}

func (f *fixture) bindings() []placementv1.ClusterResourceBinding {
	f.t.Helper()
	var list placementv1.ClusterResourceBindingList
	if err := f.List(framework.CleanupContext(f.t), &list, client.MatchingLabels{placementv1.LabelParentPlacement: f.Name}); err != nil {
		f.t.Fatalf("list bindings: %v", err)
	}
	return list.Items
}

func (f *fixture) binding(short string) *placementv1.ClusterResourceBinding {
	return &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: placement.BindingName(placement.Key{Name: f.Name}, f.Cluster(short))}}
}

// awaitBinding waits until a cluster's binding has a state.
func (f *fixture) awaitBinding(short string, state placementv1.BindingState) *placementv1.ClusterResourceBinding {
	f.t.Helper()
	b := f.binding(short)
	framework.Await(f.t, f, b, "is "+string(state), func(b *placementv1.ClusterResourceBinding) bool { return b.Spec.State == state })
	return b
}

// bound moves a binding to a snapshot as a rollout does.
func (f *fixture) bound(short, snapshot string) {
	f.t.Helper()
	f.Change(f.binding(short), fmt.Sprintf(`{"spec":{"state":"Bound","resourceSnapshotName":%q}}`, snapshot))
}

// awaitScheduled waits until a policy snapshot says how many clusters are chosen, or, with -1, that this is not known yet.
func (f *fixture) awaitScheduled(index int, count int32) *placementv1.ClusterSchedulingPolicySnapshot {
	f.t.Helper()
	s := &placementv1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: placement.PolicySnapshotName(f.Name, index)}}
	framework.Await(f.t, f, s, fmt.Sprintf("has %d clusters", count), func(s *placementv1.ClusterSchedulingPolicySnapshot) bool {
		c := meta.FindStatusCondition(s.Status.Conditions, placementv1.ConditionScheduled)
		if c == nil || fmt.Sprint(s.Status.ObservedCRPGeneration) != s.Annotations[placementv1.AnnotationPlacementGeneration] {
			return false
		}
		if count < 0 {
			return c.Status == metav1.ConditionUnknown && c.Reason == placementv1.ReasonSchedulePending
		}
		return c.Status == metav1.ConditionTrue && c.Reason == placementv1.ReasonSchedulingPolicyFulfilled && s.Status.SelectedCount == count
	})
	return s
}
