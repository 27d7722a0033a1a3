package apply

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// hubConfig leads to the hub's API server that the tests share, memberConfig to the member's.
var hubConfig, memberConfig *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(framework.RunWithAPIServer(m, &hubConfig))
}

// agent is an applier at work on a namespace of its own on the hub, and the clients to look at what it does.
type agent struct {
	t           testing.TB
	namespace   string
	config      *rest.Config // of the member
	hub, member client.WithWatch
	applier     *Applier
}

// startAgent starts an applier, and stops it when the test ends. All of them share one member, in which their objects
// have names of their own.
func startAgent(t testing.TB, name string) *agent {
	t.Helper()
	return startAgentIn(t, name, memberConfig)
}

// startAgentIn is startAgent in a member of the test's own.
func startAgentIn(t testing.TB, name string, member *rest.Config) *agent {
	t.Helper()
	a := newAgent(t, name, member)
	a.start()
	return a
}

// newAgent makes all that an agent needs, with a namespace on the hub whose name is another one each time: the hub outlives
// the test.
func newAgent(t testing.TB, name string, member *rest.Config) *agent {
	t.Helper()
	a := &agent{t: t, config: member, hub: clientOf(t, hubConfig), member: clientOf(t, member)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: placementv1.MemberNamespacePrefix + name + "-"}}
	if err := a.hub.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create the member's namespace: %v", err)
	}
	a.namespace = namespace.Name
	return a
}

// start starts the applier; again after it was stopped, as another process would.
func (a *agent) start() (stop func()) {
	a.t.Helper()
	stop = a.startIdle()
	if err := a.applier.Activate(a.t.Context(), true); err != nil {
		a.t.Fatal(err)
	}
	return stop
}

// startIdle starts the applier of a cluster that has yet to join.
func (a *agent) startIdle() (stop func()) {
	a.t.Helper()
	mgr, err := ctrl.NewManager(hubConfig, ctrl.Options{
		Scheme: framework.Scheme(), Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{a.namespace: {}}},
	})
	if err != nil {
		a.t.Fatalf("make a manager: %v", err)
	}
	if a.applier, err = New(Options{Member: a.config, Namespace: a.namespace, Clock: clock.RealClock{}, Recorder: mgr.GetEventRecorder("agent")}); err != nil {
		a.t.Fatal(err)
	}
	a.applier.settling = 2 * time.Second // nothing goes by itself in a member without controllers
	if err := a.applier.SetupWithManager(mgr); err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(a.t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		a.t.Fatal("the cache does not sync")
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			a.t.Errorf("the manager ended with %v", err)
		}
	}
	a.t.Cleanup(stop)
	return stop
}

func clientOf(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return c
}

// definitionClient also knows definitions.
func definitionClient(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	scheme := framework.Scheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	return c
}

// work is a Work of a placement, one of so many parts.
func (a *agent) work(placement, part string, parts int, objects ...runtime.Object) *placementv1.Work {
	w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: a.namespace, Name: placement + "-" + part, Finalizers: []string{placementv1.FinalizerWorkCleanup},
		Labels: map[string]string{
			placementv1.LabelParentPlacement: placement, placementv1.LabelParentBinding: placement, placementv1.LabelParentSnapshotIndex: "0",
		},
		Annotations: map[string]string{placementv1.AnnotationWorkCount: strconv.Itoa(parts)},
	}}
	w.Spec.Workload.Manifests = manifests(a.t, objects...)
	return w
}

func manifests(t testing.TB, objects ...runtime.Object) []placementv1.Manifest {
	t.Helper()
	var all []placementv1.Manifest
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatalf("encode %T: %v", o, err)
		}
		all = append(all, placementv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	return all
}

func (a *agent) create(w *placementv1.Work) *placementv1.Work {
	a.t.Helper()
	if err := a.hub.Create(a.t.Context(), w); err != nil {
		a.t.Fatalf("create Work %s: %v", w.Name, err)
	}
	return w
}

// change sets what a Work has, as the hub does for a new snapshot.
func (a *agent) change(w *placementv1.Work, index string, objects ...runtime.Object) {
	a.t.Helper()
	if err := a.hub.Get(a.t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		a.t.Fatalf("read Work %s: %v", w.Name, err)
	}
	before := w.DeepCopy()
	w.Labels[placementv1.LabelParentSnapshotIndex] = index
	w.Spec.Workload.Manifests = manifests(a.t, objects...)
	if err := a.hub.Patch(a.t.Context(), w, client.MergeFrom(before)); err != nil {
		a.t.Fatalf("change Work %s: %v", w.Name, err)
	}
}

// await waits until a condition of a Work, for its generation, is status/reason.
func (a *agent) await(w *placementv1.Work, conditionType, want string) *metav1.Condition {
	a.t.Helper()
	framework.Await(a.t, a.hub, w, conditionType+" is "+want, func(w *placementv1.Work) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, conditionType)
		return c != nil && c.ObservedGeneration == w.Generation && string(c.Status)+"/"+c.Reason == want
	})
	return meta.FindStatusCondition(w.Status.Conditions, conditionType)
}

// remove deletes a Work as the hub does, and lifts its finalizer once the agent has answered.
func (a *agent) remove(w *placementv1.Work, confirmed bool, want string) {
	a.t.Helper()
	if confirmed {
		a.confirm(w, "true")
	}
	if err := a.hub.Delete(a.t.Context(), w); err != nil {
		a.t.Fatalf("delete Work %s: %v", w.Name, err)
	}
	a.await(w, placementv1.ConditionRemoved, want)
	if err := a.hub.Patch(a.t.Context(), w, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		a.t.Fatalf("lift the finalizer of Work %s: %v", w.Name, err)
	}
	framework.AwaitGone(a.t, a.hub, w)
}

// confirm says on a Work how its removal is meant.
func (a *agent) confirm(w *placementv1.Work, how string) {
	a.t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"` + placementv1.AnnotationRemovalConfirmed + `":"` + how + `"}}}`)
	if err := a.hub.Patch(a.t.Context(), w, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		a.t.Fatalf("confirm the removal of Work %s: %v", w.Name, err)
	}
}

const (
	applied   = "True/AllManifestsApplied"
	available = "True/AllManifestsAvailable"
)

func settings(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"key": value},
	}
}

// live reads a ConfigMap in the member.
func (a *agent) live(name string) *corev1.ConfigMap {
	a.t.Helper()
	cm := &corev1.ConfigMap{}
	if err := a.member.Get(a.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, cm); err != nil {
		a.t.Fatalf("read ConfigMap %s in the member: %v", name, err)
	}
	return cm
}

// stillClock stands still until it is set.
type stillClock struct {
	clock.WithTicker
	now time.Time
}

func (c *stillClock) Now() time.Time { return c.now }
