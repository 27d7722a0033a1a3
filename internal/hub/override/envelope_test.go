package override_test

import (
	"fmt"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What is in an envelope becomes a Work of its own, which can be overridden. What may not be in it is told by name, and stops
// nothing else.
func TestEnvelope(t *testing.T) {
	f := newFixture(t, placementv1.RollingUpdateRolloutStrategyType)
	wrap := func(more string) string {
		return fmt.Sprintf(`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ResourceEnvelope","metadata":{"name":"box","namespace":%q},"data":{"a.yaml":%s%s}}`,
			f.namespace, f.configMap("inside", "hub"), more)
	}
	f.override("change", []string{"inside"}, change(everywhere(), replace, "/data/value", `"${MEMBER-CLUSTER-NAME}"`))
	first := f.snapshot(0, f.configMap("a", "hub"), wrap(""))
	b := f.join("one", nil)
	f.given(b, nil, []string{f.namespace + "/change-0"}, yes, placementv1.ReasonOverriddenSucceeded)
	framework.Await(t, f, b, "is written", func(b *placementv1.ClusterResourceBinding) bool {
		return meta.IsStatusConditionTrue(b.Status.Conditions, placementv1.ConditionWorkSynchronized)
	})
	if got := f.value("one", "a"); got != "hub" {
		t.Errorf("a is %q", got)
	}
	if o := f.placed("one", "ResourceEnvelope", "box"); o != nil {
		t.Error("the envelope itself is placed")
	}
	id := placement.EnvelopeID("ResourceEnvelope", f.namespace, "box")
	w := &placementv1.Work{}
	key := client.ObjectKey{Namespace: placement.MemberNamespace(f.Cluster("one")), Name: f.Name + "-envelope-" + id}
	if err := f.Get(t.Context(), key, w); err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		placementv1.LabelEnvelopeType: "ResourceEnvelope", placementv1.LabelEnvelopeName: "box", placementv1.LabelEnvelopeNamespace: f.namespace,
		placementv1.LabelParentSnapshotIndex: "0", placementv1.LabelParentPlacement: f.Name,
	} {
		if w.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, w.Labels[label], want)
		}
	}
	if w.Annotations[placementv1.AnnotationWorkCount] != "2" {
		t.Errorf("work count %s, want 2", w.Annotations[placementv1.AnnotationWorkCount])
	}
	if len(w.Spec.Workload.Manifests) != 1 || !strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), f.Cluster("one")) {
		t.Errorf("manifests %s, want the ConfigMap as it is overridden", w.Spec.Workload.Manifests)
	}

	f.Change(first, `{"metadata":{"labels":{"`+placementv1.LabelIsLatestSnapshot+`":"false"}}}`)
	second := f.snapshot(1, f.configMap("a", "new"), wrap(`,"role.yaml":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r","namespace":"`+f.namespace+`"}}`+
		`,"far.yaml":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"far","namespace":"elsewhere"}}`))
	framework.Await(t, f, b, "names the entries", func(b *placementv1.ClusterResourceBinding) bool {
		c := meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionWorkSynchronized)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == placementv1.ReasonSyncWorkFailed &&
			strings.Contains(c.Message, `"role.yaml" of ResourceEnvelope `+f.namespace+"/box") && strings.Contains(c.Message, `"far.yaml"`) &&
			strings.Contains(c.Message, "administrator") && strings.Contains(c.Message, "in namespace elsewhere")
	})
	if got := f.value("one", "a"); got != "new" {
		t.Errorf("a is %q: it waits for an entry that is refused", got)
	}
	f.Change(second, `{"metadata":{"labels":{"`+placementv1.LabelIsLatestSnapshot+`":"false"}}}`)
	f.snapshot(2, f.configMap("a", "last"))
	// Without the envelope its Work is deleted.
	framework.Await(t, f, w, "is deleted", func(w *placementv1.Work) bool { return !w.DeletionTimestamp.IsZero() })
	f.LetGo(w)
}
