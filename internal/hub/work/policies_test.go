package work

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/override/policy"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// claimed is an object that a policy claims, with the hub's controller of Works at work on it.
type claimed struct {
	*fixture
	live *snapshotReads
}

// snapshotReads counts live reads of the snapshots of one object: the hub of a test looks at what other tests have left, too.
type snapshotReads struct {
	client.Reader
	object string
	count  atomic.Int32
}

func (r *snapshotReads) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*placementv1.ResourceSnapshot); ok && strings.HasPrefix(key.Name, r.object+"-") {
		r.count.Add(1)
	}
	return r.Reader.Get(ctx, key, o, opts...)
}

func newClaimed(t *testing.T) *claimed {
	t.Helper()
	hub := framework.NewHub(t, hubConfig)
	hub.Writes.Placement = "" // all of them
	f := &claimed{fixture: &fixture{Hub: hub, t: t, key: placement.Key{Namespace: "default", Name: hub.Name}}, live: &snapshotReads{object: hub.Name}}
	caches := withoutContent()
	caches.ByObject[&placementv1.ResourceSnapshot{}] = cache.ByObject{Transform: func(o any) (any, error) {
		if s, ok := o.(*placementv1.ResourceSnapshot); ok {
			s.Spec.SelectedResources = nil
		}
		return o, nil
	}}
	f.Run(caches, func(mgr ctrl.Manager) error {
		f.live.Reader = mgr.GetAPIReader()
		c := &Controller{Client: f.Writes.Count(mgr.GetClient()), APIReader: f.live, Carriage: placement.ObjectCarriages()[1], Clock: clock.RealClock{}, Tracker: &consistency.Tracker{}}
		if err := AddIndexes(mgr.GetFieldIndexer()); err != nil {
			return err
		}
		return c.SetupWithManager(mgr)
	})
	return f
}

func (f *claimed) owned(name string) metav1.ObjectMeta {
	m := f.Owned(name)
	m.Namespace, m.Labels = f.key.Namespace, map[string]string{placementv1.LabelParentObject: f.Name}
	return m
}

// revise makes a revision of the object, a Deployment with an image's tag. described tells whether the metadata says what it holds.
func (f *claimed) revise(index int, tag string, described bool) {
	f.t.Helper()
	raw := fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"namespace":"default","labels":{"app":%q}},
		"spec":{"template":{"spec":{"containers":[{"name":"app","image":"web:%s"}]}}}}`, f.Name, f.Name, tag)
	s := &placementv1.ResourceSnapshot{ObjectMeta: f.owned(placement.ResourceSnapshotName(f.Name, index))}
	s.Labels[placementv1.LabelResourceIndex] = strconv.Itoa(index)
	s.Annotations[placementv1.AnnotationSnapshotCount], s.Annotations[placementv1.AnnotationResourceHash] = "1", tag
	if described {
		s.Annotations[policyv1alpha1.AnnotationObjects] = policy.Describe([][]byte{raw})
	}
	s.Spec.SelectedResources = []placementv1.ResourceContent{{RawExtension: runtime.RawExtension{Raw: raw}}}
	f.Make(s)
}

func (f *claimed) bindTo(short string, replicas int32) *placementv1.ResourceBinding {
	f.t.Helper()
	b := &placementv1.ResourceBinding{ObjectMeta: f.owned(placement.BindingName(f.key, f.Cluster(short)))}
	b.Finalizers = []string{placementv1.FinalizerWorkCleanup}
	b.Spec = placementv1.ResourceBindingSpec{State: placementv1.BindingStateBound, TargetCluster: f.Cluster(short), Replicas: ptr.To(replicas),
		ClusterDecision: placementv1.ClusterDecision{ClusterName: f.Cluster(short), Selected: true, Reason: "picked"}}
	f.Make(b)
	return b
}

// spec reads what an override policy says, in which NAME stands before the names of this test.
func (f *claimed) spec(text string) policyv1alpha1.OverrideSpec {
	f.t.Helper()
	var s policyv1alpha1.OverrideSpec
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "NAME", f.Name)), &s); err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *claimed) policy(name, text string) *policyv1alpha1.OverridePolicy {
	f.t.Helper()
	p := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: f.Name + "-" + name}, Spec: f.spec(text)}
	f.Make(p)
	return p
}

func (f *claimed) respec(p *policyv1alpha1.OverridePolicy, text string) {
	f.t.Helper()
	before := p.DeepCopy()
	p.Spec = f.spec(text)
	if err := f.Patch(f.t.Context(), p, client.MergeFrom(before)); err != nil {
		f.t.Fatal(err)
	}
}

// holds waits until a cluster's Work holds all of some texts, and returns it.
func (f *claimed) holds(short string, texts ...string) *placementv1.Work {
	f.t.Helper()
	w := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Name: placement.WorkName(f.key, 0), Namespace: placement.MemberNamespace(f.Cluster(short))}}
	framework.Await(f.t, f, w, "holds "+strings.Join(texts, " and "), func(w *placementv1.Work) bool {
		for _, text := range texts {
			if len(w.Spec.Workload.Manifests) != 1 || !strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), text) {
				return false
			}
		}
		return true
	})
	return w
}

func (f *claimed) overridden(b *placementv1.ResourceBinding, want string) string {
	f.t.Helper()
	var message string
	framework.Await(f.t, f, b, "says of overrides "+want, func(b *placementv1.ResourceBinding) bool {
		c := meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionOverridden)
		if c == nil || string(c.Status)+"/"+c.Reason != want {
			return false
		}
		message = c.Message
		return true
	})
	return message
}

const prodTag = `
resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {app: NAME}}}]
overrideRules:
- targetCluster: {labelSelector: {matchLabels: {env: prod}}}
  overriders: {imageOverrider: [{component: Tag, operator: replace, value: %q}]}`

// A policy is in the Works of the clusters that it is for, and in no others; an edit, the cluster's labels and its end are followed.
func TestOverridePoliciesReachTheirClusters(t *testing.T) {
	f := newClaimed(t)
	f.join("east")
	f.join("west")
	f.Change(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster("east")}}, `{"metadata":{"labels":{"env":"prod"}}}`)
	p := f.policy("tag", fmt.Sprintf(prodTag, "prod"))
	f.revise(0, "one", true)
	east, west := f.bindTo("east", 2), f.bindTo("west", 3)
	f.holds("east", `"image":"web:prod"`, `"replicas":2`)
	before := f.holds("west", `"image":"web:one"`, `"replicas":3`)
	f.overridden(east, "True/"+placementv1.ReasonOverriddenSucceeded)
	f.overridden(west, "True/"+placementv1.ReasonNoOverrideSpecified)

	f.respec(p, fmt.Sprintf(prodTag, "next"))
	f.holds("east", `"image":"web:next"`)
	if after := f.holds("west", `"image":"web:one"`); after.Generation != before.Generation {
		t.Errorf("the Work of a cluster that the policy is not for was written: generation %d after %d", after.Generation, before.Generation)
	}
	f.Change(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster("west")}}, `{"metadata":{"labels":{"env":"prod"}}}`)
	f.holds("west", `"image":"web:next"`)

	// Of the whole hub, and applied before: the one of the namespace has the last word. Replicas that are overridden win over a share.
	cop := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: f.Name}, Spec: f.spec(`
resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: NAME}]
overrideRules:
- overriders:
    imageOverrider: [{component: Tag, operator: replace, value: hub}, {component: Registry, operator: add, value: r.example.com}]
    plaintext: [{path: /spec/replicas, operator: replace, value: 9}]`)}
	f.Make(cop)
	f.holds("east", `"image":"r.example.com/web:next"`, `"replicas":9`)
	f.holds("west", `"image":"r.example.com/web:next"`, `"replicas":9`)
	if err := f.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	f.holds("east", `"image":"r.example.com/web:hub"`)
	f.holds("west", `"image":"r.example.com/web:hub"`)

	// A hub that starts anew needs no content to find that all is as it should be.
	f.overridden(east, "True/"+placementv1.ReasonOverriddenSucceeded)
	f.overridden(west, "True/"+placementv1.ReasonOverriddenSucceeded)
	f.Stop()
	f.live.count.Store(0)
	works := []int64{f.holds("east").Generation, f.holds("west").Generation}
	f.Start()
	f.policy("later", `
resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]
overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {a: b}}]}}]`) // is for nothing here
	f.Change(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster("west")}}, `{"metadata":{"labels":{"more":"x"}}}`)
	if err := f.Delete(t.Context(), cop); err != nil {
		t.Fatal(err)
	}
	f.holds("east", `"image":"web:one"`)
	f.holds("west", `"image":"web:one"`)
	f.overridden(east, "True/"+placementv1.ReasonNoOverrideSpecified)
	if got := []int64{f.holds("east").Generation, f.holds("west").Generation}; got[0] != works[0]+1 || got[1] != works[1]+1 {
		t.Errorf("generations of the Works are %v after %v, want one write each since the restart", got, works)
	}
	if n := f.live.count.Load(); n > 1 {
		t.Errorf("%d live reads of the snapshot for the writes of two Works, want one", n)
	}
}

// An override that cannot be made holds up the object in that cluster alone, which keeps what it has, and is made once it can be.
func TestOverridePolicyThatFails(t *testing.T) {
	f := newClaimed(t)
	f.join("east")
	f.join("west")
	f.Change(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster("east")}}, `{"metadata":{"labels":{"env":"prod"}}}`)
	f.revise(0, "one", true)
	east, west := f.bindTo("east", 2), f.bindTo("west", 3)
	f.holds("east", "web:one")
	f.holds("west", "web:one")
	const broken = `
resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: NAME}]
overrideRules:
- targetCluster: {labelSelector: {matchLabels: {env: prod}}}
  overriders: {plaintext: [{path: /spec/nothing/here, operator: remove}]}`
	p := f.policy("broken", broken)
	message := f.overridden(east, "False/"+placementv1.ReasonOverriddenFailed)
	for _, part := range []string{"OverridePolicy default/" + p.Name, "spec.overrideRules[0].overriders.plaintext[0]", "/spec/nothing/here", "Deployment default/" + f.Name, f.Cluster("east")} {
		if !strings.Contains(message, part) {
			t.Errorf("the message does not name %s: %s", part, message)
		}
	}
	f.revise(1, "two", true)
	f.holds("west", "web:two")
	f.overridden(west, "True/"+placementv1.ReasonNoOverrideSpecified)
	w := &placementv1.Work{ObjectMeta: f.holds("east").ObjectMeta}
	framework.Await(t, f, w, "is of the second revision", func(w *placementv1.Work) bool { return w.Labels[placementv1.LabelParentSnapshotIndex] == "1" })
	f.holds("east", "web:one")
	f.overridden(east, "False/"+placementv1.ReasonOverriddenFailed)
	f.respec(p, strings.Replace(fmt.Sprintf(prodTag, "good"), "labelSelector: {matchLabels: {app: NAME}}", "name: NAME", 1))
	f.holds("east", "web:good")
	f.overridden(east, "True/"+placementv1.ReasonOverriddenSucceeded)
}

// A revision whose metadata does not say what it holds is asked itself.
func TestOverridePolicyWithoutDescription(t *testing.T) {
	f := newClaimed(t)
	f.join("east")
	f.Change(&clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: f.Cluster("east")}}, `{"metadata":{"labels":{"env":"prod"}}}`)
	f.revise(0, "one", false)
	f.bindTo("east", 1)
	f.holds("east", "web:one")
	f.policy("tag", fmt.Sprintf(prodTag, "prod"))
	f.holds("east", "web:prod")
}
