package schedule

import (
	"cmp"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Owner is the placement that bindings are made for.
type Owner struct {
	// Key and UID are the placement's; Created is when it was made.
	Key     placement.Key
	UID     types.UID
	Created metav1.Time
	// PolicySnapshot is the name of the policy snapshot that the decisions come from.
	PolicySnapshot string
}

// owns tells whether a binding was made for this very placement, and not for an earlier one of its name. One from which
// somebody took the mark that tells so is known by its name and age.
func (o *Owner) owns(b placementv1.BindingObject) bool {
	uid, marked := b.GetAnnotations()[placementv1.AnnotationPlacementUID]
	if !marked {
		return b.GetName() == o.bindingName(b) && !b.GetCreationTimestamp().Time.Before(o.Created.Time)
	}
	return uid == string(o.UID)
}

// mark says on a binding whose it is, where somebody has taken that off.
func (o *Owner) mark(b placementv1.BindingObject) {
	annotations, labels := b.GetAnnotations(), b.GetLabels()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if labels == nil {
		labels = map[string]string{}
	}
	annotations[placementv1.AnnotationPlacementUID] = string(o.UID)
	labels[placementv1.LabelParentPlacement] = o.Key.Name
	b.SetAnnotations(annotations)
	b.SetLabels(labels)
}

// Holders are the clusters that the placement has bindings to.
func (o *Owner) Holders(fleet Fleet, bindings []placementv1.BindingObject) map[string]Holder {
	holders := map[string]Holder{}
	for cluster, b := range o.standing(bindings) {
		if !o.owns(b) {
			continue
		}
		spec, c := b.BindingSpec(), fleet.Cluster(cluster)
		uid := b.GetAnnotations()[placementv1.AnnotationClusterUID]
		holders[cluster] = Holder{
			State: spec.State, Removing: !b.GetDeletionTimestamp().IsZero(), Decision: spec.ClusterDecision,
			Current: spec.SchedulingPolicySnapshotName == o.PolicySnapshot && c != nil && (uid == "" || uid == string(c.UID)),
		}
	}
	return holders
}

// standing finds, for each cluster, the binding that stands for it: of several, the one that has its name.
func (o *Owner) standing(bindings []placementv1.BindingObject) map[string]placementv1.BindingObject {
	standing := map[string]placementv1.BindingObject{}
	for _, b := range bindings {
		if _, taken := standing[b.BindingSpec().TargetCluster]; !taken || b.GetName() == o.bindingName(b) {
			standing[b.BindingSpec().TargetCluster] = b
		}
	}
	return standing
}

// Changes are what is to be done to a placement's bindings so that they say what was decided.
type Changes struct {
	// Create are bindings to be made; Update are copies of existing ones, changed.
	Create, Update []placementv1.BindingObject
	// Gone are bindings, given up already, to clusters that the fleet does not know any more.
	Gone []placementv1.BindingObject
	// Waiting says, for each chosen cluster that cannot be given a binding yet, what for.
	Waiting []string
}

// Bind compares decisions with bindings, which are not changed. A binding of an earlier placement of the same name is
// never adopted, nor is one that is being deleted: the cluster waits until it is gone, and as long as it does, the one that it
// is to replace is not given up.
func Bind(o Owner, fleet Fleet, result Result, bindings []placementv1.BindingObject, newBinding func() placementv1.BindingObject) Changes {
	var changes Changes
	kept := o.standing(bindings)
	chosen := sets.New[string]()
	for i := range result.Selected {
		decision := result.Selected[i]
		chosen.Insert(decision.ClusterName)
		b := kept[decision.ClusterName]
		switch {
		case b == nil:
			changes.Create = append(changes.Create, o.newBinding(newBinding(), fleet.Cluster(decision.ClusterName), decision))
		case !o.owns(b):
			changes.Waiting = append(changes.Waiting, fmt.Sprintf("binding %q of an earlier placement of this name is still there", b.GetName()))
		case !b.GetDeletionTimestamp().IsZero():
			changes.Waiting = append(changes.Waiting, fmt.Sprintf("binding %q is still being deleted", b.GetName()))
		default:
			changes.update(b, func(c placementv1.BindingObject) { o.choose(c, fleet.Cluster(decision.ClusterName), decision) })
		}
	}
	replaced := o.notReplacedYet(fleet, &result, chosen, kept, len(changes.Waiting))
	for _, b := range bindings {
		cluster := b.BindingSpec().TargetCluster
		if !o.owns(b) || !b.GetDeletionTimestamp().IsZero() || (chosen.Has(cluster) && kept[cluster] == b) {
			continue
		}
		if replaced.Has(cluster) && kept[cluster] == b {
			changes.Waiting = append(changes.Waiting, fmt.Sprintf("cluster %q keeps what it has until then", cluster))
			continue
		}
		if b.BindingSpec().State == placementv1.BindingStateUnscheduled && fleet.Cluster(cluster) == nil {
			changes.Gone = append(changes.Gone, b)
			continue
		}
		reason := result.refused(cluster)
		if chosen.Has(cluster) {
			reason = "another binding stands for the cluster"
		}
		changes.update(b, func(c placementv1.BindingObject) { o.mark(c); unchoose(c, reason) })
	}
	return changes
}

// notReplacedYet are clusters that are not chosen any more, and that keep what they have while so many of those that are chosen
// cannot be given a binding: where a policy asks for a number of clusters, giving up the old ones first would leave the placement
// with fewer, and whoever keeps to a budget could not know. Those that are available come first.
func (o *Owner) notReplacedYet(fleet Fleet, result *Result, chosen sets.Set[string], standing map[string]placementv1.BindingObject, missing int) sets.Set[string] {
	if missing == 0 || result.wanted < 0 {
		return nil
	}
	var names []string
	for cluster, b := range standing {
		c := fleet.Cluster(cluster)
		if o.owns(b) && b.GetDeletionTimestamp().IsZero() && !chosen.Has(cluster) && c != nil && !c.Leaving && b.BindingSpec().State == placementv1.BindingStateBound {
			names = append(names, cluster)
		}
	}
	available := func(cluster string) int {
		if meta.IsStatusConditionTrue(standing[cluster].BindingStatus().Conditions, placementv1.ConditionAvailable) {
			return 0
		}
		return 1
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(available(a)-available(b), cmp.Compare(a, b)) })
	return sets.New(names[:min(missing, len(names))]...)
}

// update adds a changed copy of b, if the change makes a difference.
func (c *Changes) update(b placementv1.BindingObject, change func(placementv1.BindingObject)) {
	changed, _ := b.DeepCopyObject().(placementv1.BindingObject)
	change(changed)
	if !equality.Semantic.DeepEqual(b, changed) {
		c.Update = append(c.Update, changed)
	}
}

func (o *Owner) bindingName(b placementv1.BindingObject) string {
	return placement.BindingName(o.Key, b.BindingSpec().TargetCluster)
}

// newBinding fills an empty binding of a cluster.
func (o *Owner) newBinding(b placementv1.BindingObject, c *Cluster, decision placementv1.ClusterDecision) placementv1.BindingObject {
	b.SetName(placement.BindingName(o.Key, c.Name))
	b.SetNamespace(o.Key.Namespace)
	b.SetLabels(map[string]string{placementv1.LabelParentPlacement: o.Key.Name})
	b.SetAnnotations(map[string]string{
		placementv1.AnnotationPlacementUID: string(o.UID),
		placementv1.AnnotationClusterUID:   string(c.UID),
	})
	b.SetFinalizers([]string{placementv1.FinalizerWorkCleanup})
	*b.BindingSpec() = placementv1.ResourceBindingSpec{
		State:                        placementv1.BindingStateScheduled,
		SchedulingPolicySnapshotName: o.PolicySnapshot,
		TargetCluster:                c.Name,
		ClusterDecision:              decision,
	}
	return b
}

// choose makes an existing binding one of a cluster that is wanted. Where it was given up before, it takes up the state
// it had; where its cluster has left since and another joined under the name, it starts anew.
func (o *Owner) choose(b placementv1.BindingObject, c *Cluster, decision placementv1.ClusterDecision) {
	o.mark(b)
	spec, annotations := b.BindingSpec(), b.GetAnnotations()
	if seen := annotations[placementv1.AnnotationClusterUID]; seen != string(c.UID) {
		if seen != "" {
			spec.State, spec.ResourceSnapshotName = placementv1.BindingStateScheduled, ""
		}
		annotations[placementv1.AnnotationClusterUID] = string(c.UID)
	}
	if spec.State == placementv1.BindingStateUnscheduled {
		spec.State = stateBefore(b)
	}
	delete(annotations, placementv1.AnnotationPreviousBindingState)
	if finalizers := b.GetFinalizers(); !slices.Contains(finalizers, placementv1.FinalizerWorkCleanup) {
		b.SetFinalizers(append(finalizers, placementv1.FinalizerWorkCleanup))
	}
	spec.SchedulingPolicySnapshotName = o.PolicySnapshot
	spec.ClusterDecision = decision
}

// stateBefore is the state that an Unscheduled binding had. One that has a snapshot was Bound, whatever became of the
// annotation.
func stateBefore(b placementv1.BindingObject) placementv1.BindingState {
	if b.BindingSpec().ResourceSnapshotName == "" {
		return placementv1.BindingStateScheduled
	}
	return placementv1.BindingStateBound
}

// unchoose gives a cluster up. What it has stays until the binding is deleted.
func unchoose(b placementv1.BindingObject, reason string) {
	spec := b.BindingSpec()
	if spec.State == placementv1.BindingStateUnscheduled {
		return
	}
	annotations := b.GetAnnotations()
	annotations[placementv1.AnnotationPreviousBindingState] = string(spec.State)
	spec.State = placementv1.BindingStateUnscheduled
	spec.ClusterDecision = placementv1.ClusterDecision{ClusterName: spec.TargetCluster, Reason: reason}
}
