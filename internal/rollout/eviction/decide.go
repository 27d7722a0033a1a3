// Package eviction decides what becomes of evictions: whether there is something to evict, and whether the placement's
// disruption budget lets it. It does no I/O.
package eviction

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/rollout/rolling"
	"github.com/fleetwright/fleetwright/internal/rollout/verdict"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Messages that users of the public system know.
const (
	messageValid       = "Eviction is valid"
	messageNoPlacement = "Failed to find ClusterResourcePlacement targeted by eviction"
	messageDeleting    = "Found deleting ClusterResourcePlacement targeted by eviction"
	messagePickFixed   = "Found ClusterResourcePlacement with PickFixed placement type targeted by eviction"
	messageNoBinding   = "Failed to find scheduler decision for placement in cluster targeted by eviction"
	messageTwoBindings = "Found more than one scheduler decision for placement in cluster targeted by eviction"
	messageRemoving    = "Eviction is allowed, resources propagated by placement is currently being removed from cluster targeted by eviction"
	messageNotThereYet = "Eviction is blocked, placement has not propagated resources to target cluster yet"
	messageFailed      = "Eviction is allowed, placement has failed"
	messageNoBudget    = "Eviction is allowed, no ClusterResourcePlacementDisruptionBudget specified"
	messageAllowed     = "Eviction is allowed by specified ClusterResourcePlacementDisruptionBudget"
	messageBlocked     = "Eviction is blocked by specified ClusterResourcePlacementDisruptionBudget"
	messageMisfit      = "Eviction is blocked by misconfigured ClusterResourcePlacementDisruptionBudget"
)

// Input is all that a decision is made from. Nothing in it is changed.
type Input struct {
	Eviction *placementv1.ClusterResourcePlacementEviction
	// Placement is the one that the eviction names; nil where there is none.
	Placement placementv1.PlacementObject
	// Bindings are those of this very placement.
	Bindings []placementv1.BindingObject
	// Budget is the placement's; nil where it has none.
	Budget *placementv1.ClusterResourcePlacementDisruptionBudget
}

// Outcome is what becomes of an eviction now.
type Outcome struct {
	// Condition is what is to be said of it.
	Condition metav1.Condition
	// Delete is the binding to be deleted first; nil where none is.
	Delete placementv1.BindingObject
	// Result is what has become of an eviction that is finished with this; empty where it is not.
	Result Result
	// Block is what keeps one that is Blocked from being executed.
	Block Block
}

// Result is what has become of an eviction.
type Result string

const (
	// Executed is one whose cluster lets go, or has let go, of what was placed there.
	Executed Result = "Executed"
	// Blocked is one that may not be executed.
	Blocked Result = "Blocked"
	// Invalid is one with nothing to evict.
	Invalid Result = "Invalid"
)

// Block is what keeps an eviction from being executed.
type Block string

const (
	// ByMinAvailable and ByMaxUnavailable: that limit of the placement's disruption budget.
	ByMinAvailable   Block = "minAvailable"
	ByMaxUnavailable Block = "maxUnavailable"
	// ByMisconfiguredBudget: a limit that cannot be counted for this placement.
	ByMisconfiguredBudget Block = "misconfiguredBudget"
	// ByNothingPlaced: the cluster was chosen and was given nothing so far.
	ByNothingPlaced Block = "nothingPlaced"
)

// Finished tells whether an eviction was dealt with.
func Finished(e *placementv1.ClusterResourcePlacementEviction) bool {
	return meta.IsStatusConditionFalse(e.Status.Conditions, placementv1.ConditionValid) ||
		meta.FindStatusCondition(e.Status.Conditions, placementv1.ConditionExecuted) != nil
}

// Decide takes the next step with an eviction that is not finished: first it says whether the eviction is valid, then whether
// it is executed. What is said first makes a hub that crashes in between know what it was about.
func Decide(in Input) Outcome {
	valid := meta.IsStatusConditionTrue(in.Eviction.Status.Conditions, placementv1.ConditionValid)
	there := on(in.Bindings, in.Eviction.Spec.ClusterName)
	if !valid {
		if message, remedy := invalid(in, there); message != "" {
			o := said(placementv1.ConditionValid, metav1.ConditionFalse, placementv1.ReasonEvictionInvalid, message+"; "+remedy)
			o.Result = Invalid
			return o
		}
		return said(placementv1.ConditionValid, metav1.ConditionTrue, placementv1.ReasonEvictionValid, messageValid)
	}
	if len(there) == 0 || !there[0].GetDeletionTimestamp().IsZero() {
		return executed(nil, messageRemoving)
	}
	return execute(in, there[0])
}

func on(bindings []placementv1.BindingObject, cluster string) []placementv1.BindingObject {
	var there []placementv1.BindingObject
	for _, b := range bindings {
		if b.BindingSpec().TargetCluster == cluster {
			there = append(there, b)
		}
	}
	return there
}

// invalid tells why there is nothing to evict, and what to do about it; both are empty where there is.
func invalid(in Input, there []placementv1.BindingObject) (message, remedy string) {
	name, cluster := in.Eviction.Spec.PlacementName, in.Eviction.Spec.ClusterName
	switch {
	case in.Placement == nil:
		return messageNoPlacement, fmt.Sprintf("there is no ClusterResourcePlacement %q: make another eviction with the right placementName", name)
	case !in.Placement.GetDeletionTimestamp().IsZero():
		return messageDeleting, fmt.Sprintf("ClusterResourcePlacement %q is being deleted, and takes its objects from cluster %q without an eviction", name, cluster)
	case in.Placement.PlacementSpec().Policy.Type() == placementv1.PickFixedPlacementType:
		return messagePickFixed, fmt.Sprintf("take cluster %q out of the clusterNames of ClusterResourcePlacement %q instead", cluster, name)
	case len(there) == 0:
		return messageNoBinding, fmt.Sprintf("ClusterResourcePlacement %q has nothing in cluster %q: its status has the clusters where it has; make another eviction with the right clusterName",
			name, cluster)
	case len(there) > 1:
		return messageTwoBindings, fmt.Sprintf("`kubectl get clusterresourcebindings -l %s=%s` lists those of ClusterResourcePlacement %q; delete the one to cluster %q that is not the hub's, and evict again",
			placementv1.LabelParentPlacement, name, name, cluster)
	}
	return "", ""
}

// execute decides on a valid eviction.
func execute(in Input, b placementv1.BindingObject) Outcome {
	if spec := b.BindingSpec(); spec.State == placementv1.BindingStateScheduled || spec.ResourceSnapshotName == "" {
		return blocked(ByNothingPlaced, messageNotThereYet, "taint the cluster, or change the placement's policy, to keep the placement from it")
	}
	if how, _ := verdict.Of(b); how == verdict.Failing {
		return executed(b, messageFailed)
	}
	if in.Budget == nil {
		return executed(b, messageNoBudget)
	}
	available := 0
	for _, other := range in.Bindings {
		if how, _ := verdict.Of(other); how == verdict.Done && other.GetDeletionTimestamp().IsZero() {
			available++
		}
	}
	total := len(in.Bindings)
	allowed, misfit := allows(&in.Budget.Spec, in.Placement, available, total)
	counts := fmt.Sprintf(", availablePlacements: %d, totalPlacements: %d", available, total)
	switch {
	case misfit != "":
		return blocked(ByMisconfiguredBudget, messageMisfit+": "+misfit, "correct "+nameOf(in.Budget)+", and evict again")
	case allowed:
		return executed(b, messageAllowed+counts)
	default:
		limit, block := in.Budget.Spec.MinAvailable, ByMinAvailable
		if in.Budget.Spec.MaxUnavailable != nil {
			limit, block = in.Budget.Spec.MaxUnavailable, ByMaxUnavailable
		}
		return blocked(block, messageBlocked+counts, fmt.Sprintf("%s has %s %s: evict again when more clusters are available, or change it", nameOf(in.Budget), block, limit))
	}
}

func nameOf(budget *placementv1.ClusterResourcePlacementDisruptionBudget) string {
	return "ClusterResourcePlacementDisruptionBudget " + budget.Name
}

// allows tells whether one more cluster may become unavailable; misfit says why a budget cannot tell.
func allows(budget *placementv1.PlacementDisruptionBudgetSpec, p placementv1.PlacementObject, available, total int) (allowed bool, misfit string) {
	desired, known := wanted(p)
	switch {
	case budget.MaxUnavailable != nil && !known:
		return false, "a PickAll placement has no number of clusters that maxUnavailable could be counted from; use minAvailable with a number"
	case budget.MaxUnavailable != nil:
		limit, _ := rolling.Scale(budget.MaxUnavailable, "", desired)
		return limit-(total-available) > 0, ""
	case budget.MinAvailable == nil:
		return true, ""
	case budget.MinAvailable.Type == intstr.String && !known:
		return false, "a PickAll placement has no number of clusters that minAvailable could be a percentage of; use a number"
	}
	least, _ := rolling.Scale(budget.MinAvailable, "", desired)
	return available-least > 0, ""
}

// wanted is how many clusters a placement is to have, where it says so.
func wanted(p placementv1.PlacementObject) (number int, known bool) {
	if p == nil || p.PlacementSpec().Policy.Type() != placementv1.PickNPlacementType {
		return 0, false
	}
	return int(ptr.Deref(p.PlacementSpec().Policy.NumberOfClusters, 0)), true
}

func executed(b placementv1.BindingObject, message string) Outcome {
	o := said(placementv1.ConditionExecuted, metav1.ConditionTrue, placementv1.ReasonEvictionExecuted, message)
	o.Delete, o.Result = b, Executed
	return o
}

// blocked is an eviction that may not be executed, with what to do about it.
func blocked(block Block, message, remedy string) Outcome {
	o := said(placementv1.ConditionExecuted, metav1.ConditionFalse, placementv1.ReasonEvictionNotExecuted, message+"; "+remedy)
	o.Result, o.Block = Blocked, block
	return o
}

func said(conditionType string, status metav1.ConditionStatus, reason, message string) Outcome {
	return Outcome{Condition: metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}}
}
