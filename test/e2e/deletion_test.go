package e2e

import (
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The things that TestDeletionInEveryOrder deletes.
const (
	thePlacement = "placement"
	theStrategy  = "strategy"
	theMember    = "member"
	theRun       = "run"
)

// TestDeletionInEveryOrder deletes a placement, its strategy, a run that is under way and a member that the run has
// updated. Whichever goes first, and however the others follow at once, nothing stays behind on the hub, and the members lose
// what was placed and nothing else.
func TestDeletionInEveryOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		first string
		then  []string // at once
		// wantLeaver is what becomes of what was placed in the member that leaves. It keeps what it has when it leaves; "" is
		// for where it depends on who is faster.
		wantLeaver string
	}{
		"placement-first": {thePlacement, []string{theMember, theRun, theStrategy}, "removed"},
		"strategy-first":  {theStrategy, []string{theRun, thePlacement, theMember}, ""},
		"member-first":    {theMember, []string{thePlacement, theStrategy, theRun}, "kept"},
		"run-first":       {theRun, []string{theMember, theStrategy, thePlacement}, "kept"},
	} {
		t.Run(name, func(t *testing.T) {
			d := startDeletion(t, name)
			d.delete(tc.first)
			framework.AwaitGone(t, d.hub, d.objects[tc.first])
			for _, other := range tc.then {
				d.delete(other)
			}
			for _, object := range d.objects {
				framework.AwaitGone(t, d.hub, object)
			}
			d.checkHub()
			d.checkMembers(tc.wantLeaver)
		})
	}
}

// deletion is a run under way: it has updated member2, which is to leave, and member3, and waits for approval of member1.
type deletion struct {
	t              *testing.T
	name           string
	hub            client.WithWatch
	leaver, stayer client.WithWatch
	objects        map[string]client.Object
	// placed and bystanders are UIDs in leaver and stayer.
	placed, bystanders [2]types.UID
}

func startDeletion(t *testing.T, name string) *deletion {
	t.Helper()
	d := &deletion{t: t, name: name, hub: clientFor(t, fleet, "hub"), leaver: clientFor(t, fleet, "member2"), stayer: clientFor(t, fleet, "member3")}
	t.Cleanup(func() {
		if err := fleet.Rejoin(framework.CleanupContext(t), "member2"); err != nil {
			t.Errorf("bring member2 back: %v", err)
		}
	})
	labelMembers(t, d.hub)
	create(t, d.hub, namespace(name))
	create(t, d.hub, configMap(name, "test-cm", "value1"))
	strategy := stagingThenCanary(name, 0)
	order := func(operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "order", Operator: operator, Values: []string{"2"}}}}
	}
	strategy.Spec.Stages[0].LabelSelector, strategy.Spec.Stages[0].AfterStageTasks = order(metav1.LabelSelectorOpNotIn), nil
	strategy.Spec.Stages[1].LabelSelector = order(metav1.LabelSelectorOpIn)
	run := updateRun(name, name, name, "", placementv1.UpdateRunStateRun)
	d.objects = map[string]client.Object{
		thePlacement: create(t, d.hub, placeNamespace(name, name, placementv1.ExternalRolloutStrategyType)),
		theStrategy:  create(t, d.hub, strategy),
		theRun:       create(t, d.hub, run),
		theMember:    &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member2"}},
	}
	framework.Await(t, d.hub, run, "waits for approval", func(r *placementv1.ClusterStagedUpdateRun) bool {
		return len(r.Status.StagesStatus) == 2 && condition(r.Status.StagesStatus[1].Conditions, "Progressing") == "False/StageUpdatingWaiting"
	})
	for i, member := range []client.WithWatch{d.leaver, d.stayer} {
		awaitValue(t, member, name, "test-cm", "value1")
		create(t, member, namespace(d.bystander()))
		d.bystanders[i] = create(t, member, configMap(d.bystander(), "test-cm", "mine")).UID
		d.placed[i] = d.uid(member, name)
	}
	return d
}

// bystander is a namespace of the member's own.
func (d *deletion) bystander() string { return d.name + "-bystander" }

func (d *deletion) delete(what string) {
	d.t.Helper()
	if err := d.hub.Delete(d.t.Context(), d.objects[what]); client.IgnoreNotFound(err) != nil {
		d.t.Fatalf("delete the %s: %v", what, err)
	}
}

// uid is that of the ConfigMap in a namespace; "" where it is not there, or on its way out.
func (d *deletion) uid(member client.Client, namespace string) types.UID {
	d.t.Helper()
	cm := configMap(namespace, "test-cm", "")
	err := member.Get(d.t.Context(), client.ObjectKeyFromObject(cm), cm)
	if client.IgnoreNotFound(err) != nil {
		d.t.Fatalf("read ConfigMap %s/test-cm: %v", namespace, err)
	}
	if err != nil || cm.DeletionTimestamp != nil {
		return ""
	}
	return cm.UID
}

// checkHub waits until nothing that was made for the placement, the run or the member is left.
func (d *deletion) checkHub() {
	d.t.Helper()
	framework.AwaitGone(d.t, d.hub, namespace("fleet-member-member2"))
	for _, tc := range []struct {
		label string
		list  client.ObjectList
	}{
		{placementv1.LabelParentPlacement, &placementv1.WorkList{}},
		{placementv1.LabelParentPlacement, &placementv1.ClusterResourceBindingList{}},
		{placementv1.LabelParentPlacement, &placementv1.ClusterResourceSnapshotList{}},
		{placementv1.LabelParentPlacement, &placementv1.ClusterSchedulingPolicySnapshotList{}},
		{placementv1.LabelTargetUpdateRun, &placementv1.ClusterApprovalRequestList{}},
	} {
		for _, object := range d.list(tc.label, tc.list) {
			framework.AwaitGone(d.t, d.hub, object)
		}
		for _, object := range d.list(tc.label, tc.list) {
			d.t.Errorf("%T %s is left behind", object, client.ObjectKeyFromObject(object))
		}
	}
}

func (d *deletion) list(label string, list client.ObjectList) []client.Object {
	d.t.Helper()
	if err := d.hub.List(d.t.Context(), list, client.MatchingLabels{label: d.name}); err != nil {
		d.t.Fatalf("list %T: %v", list, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		d.t.Fatalf("read %T: %v", list, err)
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		object, ok := item.(client.Object)
		if !ok {
			d.t.Fatalf("%T in %T is no object", item, list)
		}
		objects = append(objects, object)
	}
	return objects
}

// checkMembers looks whether the members lost what they are to lose, and nothing else.
func (d *deletion) checkMembers(wantLeaver string) {
	d.t.Helper()
	framework.AwaitGone(d.t, d.stayer, namespace(d.name))
	for _, member := range []client.WithWatch{d.leaver, d.stayer} {
		framework.AwaitGone(d.t, member, &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: d.name + "-work"}})
	}
	collectGarbage(d.t, d.leaver)
	switch got := d.uid(d.leaver, d.name); wantLeaver {
	case "kept":
		if got != d.placed[0] {
			d.t.Errorf("the member that left had an object with UID %q, and has %q", d.placed[0], got)
		}
	case "removed":
		if got != "" {
			d.t.Error("the placement was gone before the member left, but what was placed is still there")
		}
	}
	for i, member := range []client.WithWatch{d.leaver, d.stayer} {
		if got := d.uid(member, d.bystander()); got != d.bystanders[i] {
			d.t.Errorf("the bystander of %s had UID %q, and has %q", []string{"member2", "member3"}[i], d.bystanders[i], got)
		}
	}
	left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.name}}
	if err := d.leaver.Delete(d.t.Context(), left); client.IgnoreNotFound(err) != nil {
		d.t.Errorf("delete what member2 kept: %v", err)
	}
	framework.AwaitGone(d.t, d.leaver, left)
}
