package policies_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/claim"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/division"
	"github.com/fleetwright/fleetwright/internal/hub/objectstatus"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	"github.com/fleetwright/fleetwright/internal/hub/work"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule/ledger"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hubConfig leads to the API server that the tests share.
var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(framework.RunWithAPIServer(m, &hubConfig)) }

var deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// fixture is a namespace, two members of its own, and a hub that places what policies claim, up to the Works and back to the
// objects' statuses. The test plays users and agents.
type fixture struct {
	*framework.Hub
	t *testing.T
	// ns is the namespace; east and west are the members.
	ns, east, west string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Hub: framework.NewHub(t, hubConfig), t: t}
	f.ns, f.east, f.west = f.Name+"-ns", f.Cluster("east"), f.Cluster("west")
	f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.ns}})
	for _, name := range []string{f.east, f.west} {
		f.member(name)
	}
	f.Run(cache.Options{}, f.controllers)
	return f
}

func (f *fixture) controllers(mgr ctrl.Manager) error {
	d, err := discovery.NewDiscoveryClientForConfig(mgr.GetConfig())
	if err != nil {
		return err
	}
	m, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return err
	}
	watches := selection.NewWatches(d, m, clock.RealClock{})
	if err := mgr.Add(watches); err != nil {
		return err
	}
	if err := work.AddIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	c, live, real := mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{}
	all := []interface{ SetupWithManager(ctrl.Manager) error }{
		&claim.Controller{Client: c, Metadata: m, Mapper: mgr.GetRESTMapper(), Clock: real, Changes: watches},
		&claim.StatusController{Client: c, Clock: real},
	}
	account := &ledger.Ledger{}
	for _, carriage := range placement.ObjectCarriages() {
		all = append(all,
			&division.Controller{
				Client: c, APIReader: live, Carriage: carriage, Clock: real, Changes: watches, Ledger: account,
				Snapshots: &snapshots.Store{Client: c, APIReader: live, Carriage: carriage},
			},
			&work.Controller{Client: c, APIReader: live, Carriage: carriage, Clock: real, Tracker: &consistency.Tracker{}},
			&objectstatus.Controller{Client: c, APIReader: live, Carriage: carriage},
		)
	}
	for _, controller := range all {
		if err := controller.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

// member makes a member that is joined and well, with its namespace, and room for ten replicas of one CPU.
func (f *fixture) member(name string) {
	f.t.Helper()
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": f.Name}}}
	f.Make(m)
	f.t.Cleanup(func() { f.Erase(m) })
	f.Make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: placement.MemberNamespace(name)}})
	f.room(name, "10")
}

// room says how much CPU is free in a member.
func (f *fixture) room(name, cpu string) {
	f.t.Helper()
	m := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
		f.t.Fatal(err)
	}
	isTrue := func(conditionType string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()}
	}
	m.Status.Conditions = []metav1.Condition{isTrue(clusterv1.ConditionJoined)}
	m.Status.AgentStatus = []clusterv1.AgentStatus{{Type: clusterv1.MemberAgent, Conditions: []metav1.Condition{isTrue(clusterv1.ConditionHealthy)}, LastReceivedHeartbeat: metav1.Now()}}
	m.Status.ResourceUsage.ObservationTime = metav1.NewTime(time.Now().Add(time.Hour)) // later than anything else that an agent says
	m.Status.ResourceUsage.Available = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	if err := f.Status().Update(f.t.Context(), m); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) deployment(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "web", Image: "web:1", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			}}},
		}},
	}
}

// policy places the Deployment on the fixture's members, divided by their room.
func (f *fixture) policy(change func(*policyv1alpha1.PropagationSpec)) *policyv1alpha1.PropagationPolicy {
	p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: "web"}}
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	p.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": f.Name}}}
	p.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.Divided, ReplicaDivisionPreference: policyv1alpha1.Weighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

// internal is the Deployment's internal placement.
func (f *fixture) internal() *policyv1alpha1.ObjectPlacement {
	return &policyv1alpha1.ObjectPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: f.ns, Name: placement.ObjectPlacementName(deployments, f.ns, "web")}}
}

func (f *fixture) workIn(cluster string) *placementv1.Work {
	key := client.ObjectKeyFromObject(f.internal())
	return &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: placement.MemberNamespace(cluster), Name: placement.WorkName(key, 0)}}
}

// manifest is the Deployment that a Work carries; nil where it carries none.
func manifest(w *placementv1.Work) *appsv1.Deployment {
	for i := range w.Spec.Workload.Manifests {
		d := &appsv1.Deployment{}
		if err := json.Unmarshal(w.Spec.Workload.Manifests[i].Raw, d); err == nil && d.Kind == "Deployment" {
			return d
		}
	}
	return nil
}

// awaitShares waits until the Works of the two members have so many replicas; a negative number is no Work.
func (f *fixture) awaitShares(east, west int32) {
	f.t.Helper()
	for cluster, want := range map[string]int32{f.east: east, f.west: west} {
		if want < 0 {
			framework.AwaitGone(f.t, f, f.workIn(cluster))
			continue
		}
		framework.Await(f.t, f, f.workIn(cluster), fmt.Sprintf("has %d replicas", want), func(w *placementv1.Work) bool {
			d := manifest(w)
			return d != nil && ptr.Deref(d.Spec.Replicas, -1) == want
		})
	}
}

// awaitScheduled waits until the condition Scheduled is status/reason, and returns its message.
func (f *fixture) awaitScheduled(want string) string {
	f.t.Helper()
	o, message := f.internal(), ""
	framework.Await(f.t, f, o, "is scheduled "+want, func(o *policyv1alpha1.ObjectPlacement) bool {
		for _, c := range o.Status.Conditions {
			if c.Type == policyv1alpha1.ConditionScheduled && string(c.Status)+"/"+c.Reason == want && c.ObservedGeneration == o.Generation {
				message = c.Message
				return true
			}
		}
		return false
	})
	return message
}

// answer plays the agent of a member: it has applied the Work as it is, and reports so many ready replicas.
func (f *fixture) answer(cluster string, ready int32, change ...func(*placementv1.ManifestCondition)) {
	f.t.Helper()
	w := f.workIn(cluster)
	if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
		f.t.Fatalf("read the Work of %s: %v", cluster, err)
	}
	condition := func(conditionType string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: w.Generation, LastTransitionTime: metav1.Now()}
	}
	both := []metav1.Condition{condition(placementv1.ConditionApplied), condition(placementv1.ConditionAvailable)}
	status := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","status":{"observedGeneration":5,"replicas":%[1]d,"readyReplicas":%[1]d,"updatedReplicas":%[1]d,"availableReplicas":%[1]d}}`, ready)
	entry := placementv1.ManifestCondition{
		Identifier: placementv1.WorkResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: f.ns, Name: "web"},
		Conditions: both,
		BackReportedStatus: &placementv1.BackReportedStatus{
			ObservedStatus:                    placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: []byte(status)}},
			ObservedInMemberClusterGeneration: 5, ObservationTime: metav1.Now(),
		},
	}
	for _, c := range change {
		c(&entry)
	}
	w.Status.Conditions, w.Status.ManifestConditions = both, []placementv1.ManifestCondition{entry}
	if err := f.Status().Update(f.t.Context(), w); err != nil {
		f.t.Fatalf("answer for %s: %v", cluster, err)
	}
}

// removes plays the agent of a member that has removed what a deleted Work placed.
func (f *fixture) removes(cluster string) {
	f.t.Helper()
	w := f.workIn(cluster)
	framework.Await(f.t, f, w, "is deleted on purpose", func(w *placementv1.Work) bool {
		return !w.DeletionTimestamp.IsZero() && w.Annotations[placementv1.AnnotationRemovalConfirmed] != ""
	})
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
		Type: placementv1.ConditionRemoved, Status: metav1.ConditionTrue, Reason: placementv1.ReasonResourcesRemoved, ObservedGeneration: w.Generation, LastTransitionTime: metav1.Now(),
	})
	if err := f.Status().Update(f.t.Context(), w); err != nil {
		f.t.Fatalf("remove for %s: %v", cluster, err)
	}
	framework.AwaitGone(f.t, f, w)
}

func (f *fixture) scale(replicas int32) {
	f.t.Helper()
	f.Change(f.deployment(0), `{"spec":{"replicas":`+strconv.Itoa(int(replicas))+`}}`)
}
