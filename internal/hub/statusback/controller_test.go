package statusback

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hubConfig leads to the API server that the tests share.
var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

// fixture is a placement that chooses one cluster, and the controller.
type fixture struct {
	*framework.Hub
	t         *testing.T
	kinds     *placement.Kinds
	placement placementv1.PlacementObject
	namespace string
	events    *events.FakeRecorder
	config    *rest.Config // by which statuses are written
	changed   func(placement.Key)
}

// OnChange is told who wants to know of changes on the hub.
func (f *fixture) OnChange(kinds *placement.Kinds, changed func(placement.Key)) {
	if kinds.Namespaced == f.kinds.Namespaced {
		f.changed = changed
	}
}

// writer lets another user write the statuses.
type writer struct {
	client.Client
	as client.Client
}

func (w writer) Status() client.SubResourceWriter { return w.as.Status() }

func newFixture(t *testing.T, kinds *placement.Kinds) *fixture {
	t.Helper()
	f := &fixture{Hub: framework.NewHub(t, hubConfig), t: t, kinds: kinds, events: events.NewFakeRecorder(100), config: hubConfig}
	f.namespace = "ns-" + f.Name
	f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
	f.placement = kinds.NewPlacement()
	f.placement.SetName(f.Name)
	if kinds.Namespaced {
		f.placement.SetNamespace(f.namespace)
	}
	spec := f.placement.PlacementSpec()
	spec.ResourceSelectors = []placementv1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment"}}
	if !kinds.Namespaced {
		spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: f.namespace}}
	}
	spec.Policy = &placementv1.PlacementPolicy{PlacementType: placementv1.PickNPlacementType, NumberOfClusters: ptr.To[int32](1)}
	spec.Strategy.ReportBackStrategy = toOriginal()
	f.Make(f.placement)
	t.Cleanup(func() { f.Erase(f.placement) })
	f.UID = f.placement.GetUID()
	return f
}

// controller makes the controller, on a cache or on none.
func (f *fixture) controller(c client.Client, live client.Reader) *Controller {
	return &Controller{Client: writer{c, framework.Client(f.t, f.config)}, APIReader: live, Kinds: placement.AllKinds(), Recorder: f.events, Changes: f}
}

// start runs the controller.
func (f *fixture) start() {
	f.t.Helper()
	f.Run(cache.Options{}, func(mgr ctrl.Manager) error {
		return f.controller(mgr.GetClient(), mgr.GetAPIReader()).SetupWithManager(mgr)
	})
}

// pass has the controller look at a Work once, where none runs.
func (f *fixture) pass(c *Controller, w *placementv1.Work) {
	f.t.Helper()
	if _, err := c.Reconcile(f.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}); err != nil {
		f.t.Fatal(err)
	}
}

// status is the status of the hub's Deployment: ready replicas, and the generation that was observed.
func (f *fixture) status(d *appsv1.Deployment) [2]int64 {
	f.t.Helper()
	if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		f.t.Fatal(err)
	}
	return [2]int64{int64(d.Status.ReadyReplicas), d.Status.ObservedGeneration}
}

func toOriginal() *placementv1.ReportBackStrategy {
	return &placementv1.ReportBackStrategy{Type: placementv1.ReportBackStrategyTypeMirror, Destination: placementv1.ReportBackDestinationOriginalResource}
}

// bind makes the binding of a cluster, in a state.
func (f *fixture) bind(cluster string, state placementv1.BindingState) placementv1.BindingObject {
	f.t.Helper()
	b := f.kinds.NewBinding()
	meta := f.Owned(placement.BindingName(client.ObjectKeyFromObject(f.placement), cluster))
	b.SetName(meta.Name)
	b.SetNamespace(f.placement.GetNamespace())
	b.SetLabels(meta.Labels)
	b.SetAnnotations(meta.Annotations)
	*b.BindingSpec() = placementv1.ResourceBindingSpec{
		State: state, TargetCluster: cluster, ResourceSnapshotName: f.Name + "-0-snapshot", SchedulingPolicySnapshotName: f.Name + "-0",
		ClusterDecision: placementv1.ClusterDecision{ClusterName: cluster, Selected: true, Reason: "picked"},
	}
	f.Make(b)
	f.t.Cleanup(func() { f.Erase(b) })
	return b
}

func (f *fixture) deployment(name string) *appsv1.Deployment {
	f.t.Helper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	d.Spec = appsv1.DeploymentSpec{Replicas: ptr.To[int32](3), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}}
	f.Make(d)
	return d
}

// raw is an object as a manifest.
func (f *fixture) raw(kind string, o client.Object) placementv1.Manifest {
	f.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		f.t.Fatal(err)
	}
	content["apiVersion"], content["kind"] = "apps/v1", kind
	if kind == "Namespace" || kind == "Service" {
		content["apiVersion"] = "v1"
	}
	delete(content, "status")
	content["metadata"] = map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()}
	data, err := json.Marshal(content)
	if err != nil {
		f.t.Fatal(err)
	}
	return placementv1.Manifest{RawExtension: runtime.RawExtension{Raw: data}}
}

// carry makes the Work that carries a Deployment to a cluster.
func (f *fixture) carry(b placementv1.BindingObject, d *appsv1.Deployment) *placementv1.Work {
	f.t.Helper()
	namespace := placement.MemberNamespace(b.BindingSpec().TargetCluster)
	if err := f.Create(f.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); client.IgnoreAlreadyExists(err) != nil {
		f.t.Fatal(err)
	}
	w := &placementv1.Work{ObjectMeta: f.Owned(f.Name + "-work")}
	w.Namespace = namespace
	w.Labels[placementv1.LabelParentBinding] = b.GetName()
	if f.kinds.Namespaced {
		w.Labels[placementv1.LabelParentNamespace] = f.namespace
	}
	w.Spec.ReportBackStrategy = toOriginal()
	w.Spec.Workload.Manifests = []placementv1.Manifest{f.raw("Deployment", d)}
	f.Make(w)
	f.t.Cleanup(func() { f.Erase(w) })
	return w
}

// report plays the agent: so many replicas are ready of the Deployment, which has a generation in the member and has been observed at one.
func (f *fixture) report(w *placementv1.Work, d *appsv1.Deployment, ready int, generation, observed int64) {
	f.t.Helper()
	f.reportAs(w, placementv1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: d.Namespace, Name: d.Name},
		fmt.Sprintf(`{"replicas":3,"readyReplicas":%d,"observedGeneration":%d}`, ready, observed), generation)
}

func (f *fixture) reportAs(w *placementv1.Work, id placementv1.WorkResourceIdentifier, status string, generation int64) {
	f.t.Helper()
	if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		f.t.Fatal(err)
	}
	version := id.Version
	if id.Group != "" {
		version = id.Group + "/" + version
	}
	w.Status.ManifestConditions = []placementv1.ManifestCondition{{
		Identifier: id,
		Conditions: []metav1.Condition{{
			Type: placementv1.ConditionApplied, Status: metav1.ConditionTrue, Reason: placementv1.ReasonManifestApplied, ObservedGeneration: w.Generation,
			LastTransitionTime: metav1.Now(),
		}},
		BackReportedStatus: &placementv1.BackReportedStatus{
			ObservedStatus: placementv1.ResourceContent{RawExtension: runtime.RawExtension{
				Raw: fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"status":%s}`, version, id.Kind, status),
			}},
			ObservedInMemberClusterGeneration: generation, ObservationTime: metav1.Now(),
		},
	}}
	if err := f.Status().Update(f.t.Context(), w); err != nil {
		f.t.Fatal(err)
	}
}

// await waits until the hub's Deployment has so many ready replicas, and was observed at a generation.
func (f *fixture) await(d *appsv1.Deployment, ready int32, observed int64) {
	f.t.Helper()
	framework.Await(f.t, f, d, fmt.Sprintf("has %d ready replicas, observed at generation %d", ready, observed), func(d *appsv1.Deployment) bool {
		return d.Status.ReadyReplicas == ready && d.Status.ObservedGeneration == observed
	})
}

func TestStatusIsCopied(t *testing.T) {
	for name, kinds := range map[string]*placement.Kinds{"cluster": placement.ClusterKinds(), "namespace": placement.NamespacedKinds()} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, kinds)
			f.start()
			d := f.deployment("web")
			w := f.carry(f.bind(f.Cluster("a"), placementv1.BindingStateBound), d)
			f.report(w, d, 1, 5, 4)
			f.await(d, 1, 0)
			f.report(w, d, 3, 5, 5)
			f.await(d, 3, 1)

			// An edit that is not carried out yet has not been observed.
			f.Change(d, `{"spec":{"replicas":4}}`)
			f.report(w, d, 2, 5, 5)
			f.await(d, 2, 1)
			before := w.DeepCopy()
			w.Spec.Workload.Manifests = []placementv1.Manifest{f.raw("Deployment", d)}
			if err := f.Patch(t.Context(), w, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			f.report(w, d, 2, 6, 5)
			f.await(d, 2, 1)
			f.report(w, d, 3, 6, 6)
			f.await(d, 3, 2)
		})
	}
}

// TestSwitchedOff: what is on the hub stays there, and nothing more is copied until it is on again.
func TestSwitchedOff(t *testing.T) {
	f := newFixture(t, placement.ClusterKinds())
	d := f.deployment("web")
	w := f.carry(f.bind(f.Cluster("a"), placementv1.BindingStateBound), d)
	c := f.controller(f, f)
	f.report(w, d, 3, 5, 5)
	f.pass(c, w)
	f.Change(f.placement, `{"spec":{"strategy":{"reportBackStrategy":null}}}`)
	f.report(w, d, 1, 5, 5)
	f.pass(c, w)
	if got := f.status(d); got != [2]int64{3, 1} {
		t.Errorf("switched off, the status is %v", got)
	}
	f.start()
	f.Change(f.placement, `{"spec":{"strategy":{"reportBackStrategy":{"type":"Mirror","destination":"OriginalResource"}}}}`)
	f.await(d, 1, 1)
}

// TestWhatIsNotCopied: none of these reports reaches the hub's object.
func TestWhatIsNotCopied(t *testing.T) {
	for name, spoil := range map[string]func(*fixture, placementv1.BindingObject, *placementv1.Work){
		"another placement of the name": func(f *fixture, _ placementv1.BindingObject, w *placementv1.Work) {
			f.Change(w, `{"metadata":{"annotations":{"`+placementv1.AnnotationPlacementUID+`":"another"}}}`)
		},
		"a cluster that is not chosen any more": func(f *fixture, b placementv1.BindingObject, _ *placementv1.Work) {
			f.Change(b, `{"spec":{"state":"Unscheduled"}}`)
		},
		"a Work that reports to the Work alone": func(f *fixture, _ placementv1.BindingObject, w *placementv1.Work) {
			f.Change(w, `{"spec":{"reportBackStrategy":{"destination":"WorkAPI"}}}`)
		},
		"what came in an envelope": func(f *fixture, _ placementv1.BindingObject, w *placementv1.Work) {
			f.Change(w, `{"metadata":{"labels":{"`+placementv1.LabelEnvelopeType+`":"ResourceEnvelope"}}}`)
		},
		"two clusters have it": func(f *fixture, _ placementv1.BindingObject, _ *placementv1.Work) {
			f.bind(f.Cluster("b"), placementv1.BindingStateBound)
		},
		"an earlier generation of the Work": func(f *fixture, _ placementv1.BindingObject, w *placementv1.Work) {
			f.Change(w, `{"spec":{"applyStrategy":{"type":"ServerSideApply"}}}`)
		},
		"a placement that goes": func(f *fixture, _ placementv1.BindingObject, _ *placementv1.Work) {
			f.Change(f.placement, `{"metadata":{"finalizers":["fleetwright.io/test"]}}`)
			if err := f.Delete(f.t.Context(), f.placement); err != nil {
				f.t.Fatal(err)
			}
		},
		"a Work of another cluster": func(f *fixture, _ placementv1.BindingObject, w *placementv1.Work) {
			f.Change(w, `{"metadata":{"labels":{"`+placementv1.LabelParentBinding+`":"another"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, placement.ClusterKinds())
			d := f.deployment("web")
			b := f.bind(f.Cluster("a"), placementv1.BindingStateBound)
			w := f.carry(b, d)
			c := f.controller(f, f)
			f.report(w, d, 3, 5, 5)
			spoil(f, b, w)
			f.pass(c, w)
			if got := f.status(d); got != [2]int64{} {
				t.Errorf("its status is %v", got)
			}
		})
	}
}

// told waits for an event.
func (f *fixture) told(want ...string) {
	f.t.Helper()
	var got string
	select {
	case got = <-f.events.Events:
	case <-time.After(time.Minute):
		f.t.Fatalf("there is no event with %q", want)
	}
	for _, part := range want {
		if !strings.Contains(got, part) {
			f.t.Errorf("the event is %q, want %q in it", got, part)
		}
	}
}

// TestStatusOfTheHubsOwn: what the hub's own controllers run keeps the status that they write.
func TestStatusOfTheHubsOwn(t *testing.T) {
	f := newFixture(t, placement.ClusterKinds())
	d := f.deployment("web")
	w := f.carry(f.bind(f.Cluster("a"), placementv1.BindingStateBound), d)
	c := f.controller(f, f)
	d.Status.Replicas = 1
	if err := f.Status().Update(t.Context(), d, client.FieldOwner("kube-controller-manager")); err != nil {
		t.Fatal(err)
	}
	f.report(w, d, 3, 5, 5)
	f.pass(c, w)
	f.told(reasonNotCopied, "Deployment "+f.namespace+"/web", "kube-controller-manager", f.Cluster("a"))
	if got := f.status(d); got != [2]int64{} || d.Status.Replicas != 1 {
		t.Errorf("its status is %+v", d.Status)
	}
	// The namespace itself is the hub's, of which nothing is to be said.
	f.reportAs(w, placementv1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Resource: "namespaces", Name: f.namespace}, `{"phase":"Terminating"}`, 0)
	f.pass(c, w)
	var namespace corev1.Namespace
	if err := f.Get(t.Context(), client.ObjectKey{Name: f.namespace}, &namespace); err != nil || namespace.Status.Phase != corev1.NamespaceActive {
		t.Errorf("the namespace is %s (error %v)", namespace.Status.Phase, err)
	}
	if len(f.events.Events) > 0 {
		t.Errorf("told of what needs no word: %s", <-f.events.Events)
	}
}

// TestMissingRight: what the hub may not write is said once, with the remedy, and is written once the right is given.
func TestMissingRight(t *testing.T) {
	const user = "hub-without-rights"
	f := newFixture(t, placement.ClusterKinds())
	f.config = rest.CopyConfig(hubConfig)
	f.config.Impersonate = rest.ImpersonationConfig{UserName: user}
	f.start()
	d := f.deployment("web")
	w := f.carry(f.bind(f.Cluster("a"), placementv1.BindingStateBound), d)
	f.report(w, d, 1, 5, 5)
	f.told(reasonNotCopied, "deployments/status", `API group "apps"`, placementv1.LabelAggregateToHubStatus)
	f.report(w, d, 2, 5, 5)

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: f.Name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}, Verbs: []string{"update"}},
	}}
	f.Make(role)
	f.Make(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	})
	for allowed := false; !allowed && t.Context().Err() == nil; { // the API server learns of it in a moment
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "update", Group: "apps", Resource: "deployments", Subresource: "status",
		}}}
		f.Make(review)
		allowed = review.Status.Allowed
	}
	f.report(w, d, 3, 5, 5)
	f.await(d, 3, 1)
	if len(f.events.Events) > 0 {
		t.Errorf("told twice: %s", <-f.events.Events)
	}
}

// TestMadeAnew: an object that somebody deletes and makes again has the status again, though the member has nothing to report. One
// that has another status by now, and is the same object, keeps it.
func TestMadeAnew(t *testing.T) {
	f := newFixture(t, placement.ClusterKinds())
	d := f.deployment("web")
	w := f.carry(f.bind(f.Cluster("a"), placementv1.BindingStateBound), d)
	c := f.controller(f, f)
	f.report(w, d, 3, 5, 5)
	f.pass(c, w)
	f.status(d)
	d.Status.ReadyReplicas = 2
	if err := f.Status().Update(t.Context(), d, client.FieldOwner(placementv1.StatusFieldManager)); err != nil { // as for another placement
		t.Fatal(err)
	}
	if works := c.memory.doubt(client.ObjectKeyFromObject(f.placement)); len(works) != 1 || len(c.memory.doubt(placement.Key{Name: "another"})) != 0 {
		t.Errorf("the placement's Works are %v", works)
	}
	f.pass(c, w)
	if got := f.status(d); got != [2]int64{2, 1} {
		t.Errorf("two placements fight: %v", got)
	}

	f.start()
	f.report(w, d, 1, 5, 5)
	f.await(d, 1, 1)
	if err := f.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, f, d)
	again := f.deployment("web")
	f.changed(client.ObjectKeyFromObject(f.placement))
	f.await(again, 1, 1)
}

// TestNoStatusOnTheHub: a kind that has no status there is named, and one that was deleted meanwhile is no matter.
func TestNoStatusOnTheHub(t *testing.T) {
	f := newFixture(t, placement.ClusterKinds())
	d := f.deployment("web")
	w := f.carry(f.bind(f.Cluster("a"), placementv1.BindingStateBound), d)
	c := f.controller(f, f)
	f.Make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "web"}})
	id := placementv1.WorkResourceIdentifier{Version: "v1", Kind: "ServiceAccount", Resource: "serviceaccounts", Namespace: f.namespace, Name: "web"}
	f.reportAs(w, id, `{"a":"b"}`, 0)
	f.pass(c, w)
	f.told(reasonNotCopied, "ServiceAccount "+f.namespace+"/web", "no subresource status")
	id.Name = "gone"
	f.reportAs(w, id, `{"a":"b"}`, 0)
	f.pass(c, w)
	if len(f.events.Events) > 0 {
		t.Errorf("told of what needs no word: %s", <-f.events.Events)
	}
}

// TestRefusedStatus: a status that the hub's API server does not take is named, and holds up no other object.
func TestRefusedStatus(t *testing.T) {
	f := newFixture(t, placement.ClusterKinds())
	f.start()
	d := f.deployment("web")
	w := f.carry(f.bind(f.Cluster("a"), placementv1.BindingStateBound), d)
	f.reportAs(w, placementv1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: f.namespace, Name: "web"},
		`{"replicas":-1}`, 5)
	f.told(reasonNotCopied, "Deployment "+f.namespace+"/web", "does not take the member's status")
	f.report(w, d, 3, 5, 5)
	f.await(d, 3, 1)
}
