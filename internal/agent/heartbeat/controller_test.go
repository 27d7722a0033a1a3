package heartbeat

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/agent/properties"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// hubConfig leads to an API server that plays the hub's and the member's.
var hubConfig *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(framework.RunWithAPIServer(m, &hubConfig))
}

// workloads plays what applies Works.
type workloads struct {
	mu        sync.Mutex
	active    bool
	remaining []string
	failure   error
	policy    clusterv1.WorkloadsOnLeave
}

func (w *workloads) Activate(_ context.Context, active bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active = active
	return nil
}

func (w *workloads) Leave(_ context.Context, policy clusterv1.WorkloadsOnLeave) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.policy = policy
	return w.remaining, w.failure
}

func (w *workloads) set(remaining []string, failure error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remaining, w.failure = remaining, failure
}

func (w *workloads) isActive() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active
}

// noProperties knows nothing of the cluster.
type noProperties struct{}

func (noProperties) Start(ctx context.Context, _ func()) error { <-ctx.Done(); return nil }
func (noProperties) Account() properties.Account               { return properties.Account{} }

// agent is a membership at work, and the clients to look at it.
type agent struct {
	t     *testing.T
	name  string
	hub   client.WithWatch
	clock *clocktesting.FakeClock
	works *workloads
	over  chan string
	seen  chan string // what the agent saw at each look: the annotation, or gone404
	imc   *clusterv1.InternalMemberCluster
	lease *coordinationv1.Lease
}

// startAgent starts the agent of the cluster whose ID is "this", asked to join as the member that has an ID or none.
func startAgent(t *testing.T, name, memberID string) *agent {
	t.Helper()
	hub, err := client.NewWithWatch(hubConfig, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	name += "-" + rand.String(5) // so that a test can be repeated
	ns := placement.MemberNamespace(name)
	a := &agent{
		t: t, name: name, hub: hub, clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second)), works: &workloads{}, over: make(chan string, 10), seen: make(chan string, 1000),
		imc: &clusterv1.InternalMemberCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec:       clusterv1.InternalMemberClusterSpec{State: clusterv1.ClusterStateJoin, HeartbeatPeriodSeconds: 30, ClusterID: memberID},
		},
		lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: clusterv1.HeartbeatLease}},
	}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, a.imc, a.lease} {
		if err := hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme: framework.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{ns: {}}},
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			c, err := client.New(config, options)
			return &watched{Client: c, seen: a.seen}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = Add(mgr, Options{
		Cluster: name, ClusterID: "this", Member: hubConfig, Properties: noProperties{}, Workloads: a.works, Clock: a.clock,
		Over: func(why string) { a.over <- why },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("run the agent: %v", err)
		}
	})
	return a
}

// await waits until the InternalMemberCluster is as it should be.
func (a *agent) await(what string, so func(*clusterv1.InternalMemberCluster) bool) {
	a.t.Helper()
	framework.Await(a.t, a.hub, a.imc, what, so)
}

// awaitJoined waits until the agent says of itself what it should.
func (a *agent) awaitJoined(want, says string) {
	a.t.Helper()
	a.await("has Joined "+want+", "+says, func(i *clusterv1.InternalMemberCluster) bool {
		c := condition(i, clusterv1.ConditionJoined)
		return c != nil && string(c.Status)+"/"+c.Reason == want && strings.Contains(c.Message, says) && c.ObservedGeneration == i.Generation
	})
}

func condition(i *clusterv1.InternalMemberCluster, conditionType string) *metav1.Condition {
	if len(i.Status.AgentStatus) == 0 {
		return nil
	}
	return meta.FindStatusCondition(i.Status.AgentStatus[0].Conditions, conditionType)
}

// ask plays the hub: it changes what is asked of the agent.
func (a *agent) ask(change func(*clusterv1.InternalMemberCluster)) {
	a.t.Helper()
	before := a.imc.DeepCopy()
	change(a.imc)
	if err := a.hub.Patch(a.t.Context(), a.imc, client.MergeFrom(before)); err != nil {
		a.t.Fatal(err)
	}
}

// wake makes the agent look: it does not notice that the test's clock was moved.
func (a *agent) wake(why string) {
	a.ask(func(i *clusterv1.InternalMemberCluster) {
		metav1.SetMetaDataAnnotation(&i.ObjectMeta, "test/wake", why)
	})
}

// gone404 is what the agent sees where there is no InternalMemberCluster.
const gone404 = "gone"

// watched tells what the agent sees when it looks at the membership.
type watched struct {
	client.Client
	seen chan string
}

func (w *watched) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := w.Client.Get(ctx, key, o, options...)
	if _, ok := o.(*clusterv1.InternalMemberCluster); ok {
		sight := o.GetAnnotations()["test/wake"]
		if apierrors.IsNotFound(err) {
			sight = gone404
		}
		select {
		case w.seen <- sight:
		default:
		}
	}
	return err
}

// awaitSight waits until the agent has begun to look at what is so now.
func (a *agent) awaitSight(want string) {
	a.t.Helper()
	deadline := time.After(framework.Patience)
	for {
		select {
		case got := <-a.seen:
			if got == want {
				return
			}
		case <-deadline:
			a.t.Fatalf("the agent does not see %q", want)
		}
	}
}

// looked makes the agent look, and waits until it has done so and reads what has come of it: it looks one time after another,
// so that it is done with one when it begins the next.
func (a *agent) looked(why string) {
	a.t.Helper()
	for _, sight := range []string{why, why + ", done"} {
		a.wake(sight)
		a.awaitSight(sight)
	}
	for _, o := range []client.Object{a.imc, a.lease} {
		if err := a.hub.Get(a.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			a.t.Fatal(err)
		}
	}
}

// silent checks that the agent does nothing, and leaves the ID that another cluster wrote.
func (a *agent) silent(id string) {
	a.t.Helper()
	if a.works.isActive() || a.lease.Spec.RenewTime != nil || len(a.imc.Status.AgentStatus) > 0 || a.imc.Status.ClusterID != id {
		a.t.Errorf("it applies: %v, renewed the Lease at %v, and reports %+v of cluster %s",
			a.works.isActive(), a.lease.Spec.RenewTime, a.imc.Status.AgentStatus, a.imc.Status.ClusterID)
	}
}

func (a *agent) join() {
	a.t.Helper()
	a.awaitJoined("True/"+clusterv1.ReasonAgentJoined, "applies")
	a.await("says that it is healthy", func(i *clusterv1.InternalMemberCluster) bool { return condition(i, clusterv1.ConditionHealthy) != nil })
}

func TestJoinsWhenTheHubHasRecordedIt(t *testing.T) {
	a := startAgent(t, "join", "")
	a.await("says which cluster asks", func(i *clusterv1.InternalMemberCluster) bool { return i.Status.ClusterID == "this" })
	a.await("says that it is healthy", func(i *clusterv1.InternalMemberCluster) bool { return condition(i, clusterv1.ConditionHealthy) != nil })
	if c := condition(a.imc, clusterv1.ConditionJoined); c != nil || a.works.isActive() {
		t.Errorf("before the hub has recorded it, it says %+v and applies: %v", c, a.works.isActive())
	}
	a.ask(func(i *clusterv1.InternalMemberCluster) { i.Spec.ClusterID = "this" })
	a.join()
	framework.Await(t, a.hub, a.lease, "was renewed", func(l *coordinationv1.Lease) bool {
		return l.Spec.RenewTime != nil && l.Spec.RenewTime.Equal(&metav1.MicroTime{Time: a.clock.Now()}) && *l.Spec.HolderIdentity == "this"
	})
	a.clock.Step(30 * time.Second)
	framework.Await(t, a.hub, a.lease, "was renewed again", func(l *coordinationv1.Lease) bool { return l.Spec.RenewTime.Time.Equal(a.clock.Now()) })
}

func TestWritesOnlyWhenThereIsNewsOrItIsTime(t *testing.T) {
	a := startAgent(t, "silence", "this")
	a.join()
	before := a.imc.Status.DeepCopy()
	a.clock.Step(time.Minute)
	a.looked("a minute later")
	if got, want := lastHeartbeat(&a.imc.Status), lastHeartbeat(before); !got.Equal(want) {
		t.Errorf("without news there is a heartbeat at %s after that at %s", got, want)
	}
	a.clock.Step(time.Minute)
	a.wake("two minutes later")
	a.await("has another heartbeat", func(i *clusterv1.InternalMemberCluster) bool {
		return i.Status.AgentStatus[0].LastReceivedHeartbeat.Time.Equal(a.clock.Now())
	})
	if silence(before, &a.imc.Status) != accountPeriod {
		t.Error("there was news")
	}
}

func TestSecondCluster(t *testing.T) {
	a := startAgent(t, "second", "other")
	a.await("says that it is there", func(i *clusterv1.InternalMemberCluster) bool { return i.Status.ClusterID == "this" })
	// The member's own agent puts its ID back, and that is respected.
	a.imc.Status.ClusterID = "other"
	if err := a.hub.Status().Update(t.Context(), a.imc); err != nil {
		t.Fatal(err)
	}
	a.looked("again")
	a.silent("other")
	a.clock.Step(claimPeriod)
	a.wake("later")
	a.await("says again that it is there", func(i *clusterv1.InternalMemberCluster) bool { return i.Status.ClusterID == "this" })
	// The hub decides for it after all.
	a.ask(func(i *clusterv1.InternalMemberCluster) { i.Spec.ClusterID = "this" })
	a.join()
}

func TestAnotherWasFaster(t *testing.T) {
	a := startAgent(t, "faster", "nobody")
	a.await("says that it is there", func(i *clusterv1.InternalMemberCluster) bool { return i.Status.ClusterID == "this" })
	a.imc.Status.ClusterID = "other"
	if err := a.hub.Status().Update(t.Context(), a.imc); err != nil {
		t.Fatal(err)
	}
	a.ask(func(i *clusterv1.InternalMemberCluster) { i.Spec.ClusterID = "" })
	a.looked("while nothing is recorded")
	a.silent("other")
	a.ask(func(i *clusterv1.InternalMemberCluster) { i.Spec.ClusterID = "this" })
	a.join()
}

func TestLeave(t *testing.T) {
	a := startAgent(t, "leave", "this")
	a.works.set([]string{"ConfigMap a/b"}, nil)
	a.join()
	a.ask(func(i *clusterv1.InternalMemberCluster) {
		i.Spec.State, i.Spec.Workloads = clusterv1.ClusterStateLeave, clusterv1.WorkloadsRemove
	})
	a.awaitJoined("True/"+clusterv1.ReasonAgentJoined, "1 objects are still there: ConfigMap a/b")
	if a.works.isActive() {
		t.Error("it still applies")
	}
	a.works.set(nil, errors.New("the member says no"))
	a.awaitJoined("Unknown/"+clusterv1.ReasonAgentFailedToLeave, "the member says no")
	a.works.set(nil, nil)
	a.awaitJoined("False/"+clusterv1.ReasonAgentLeft, "removed what was placed")
	if a.works.policy != clusterv1.WorkloadsRemove {
		t.Errorf("it was told to %s", a.works.policy)
	}
	if err := a.hub.Delete(t.Context(), a.imc); err != nil {
		t.Fatal(err)
	}
	if why := <-a.over; !strings.Contains(why, "has left") {
		t.Errorf("it is over: %s", why)
	}
}

func TestAccidentsEndNothing(t *testing.T) {
	a := startAgent(t, "accident", "this")
	a.join()
	if err := a.hub.Delete(t.Context(), a.imc); err != nil {
		t.Fatal(err)
	}
	if err := a.hub.Get(t.Context(), client.ObjectKeyFromObject(a.imc), a.imc); !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	a.awaitSight(gone404)
	a.imc.ResourceVersion, a.imc.UID = "", ""
	if err := a.hub.Create(t.Context(), a.imc); err != nil {
		t.Fatal(err)
	}
	// It looks one time after another: what it made of the absence is done by now.
	if why := <-a.over; !strings.Contains(why, "anew") {
		t.Errorf("it is over: %s", why)
	}
	if !a.works.isActive() {
		t.Error("without being asked to leave it applies nothing any more")
	}
}
