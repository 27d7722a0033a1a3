package division

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// itemsTold is how many clusters a status tells of in which the object is not available.
const itemsTold = 100

func (p *pass) set(now time.Time, conditionType string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
		ObservedGeneration: p.placement.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
	})
}

// released says that no policy has the object.
func (p *pass) released(now time.Time) {
	p.set(now, policyv1alpha1.ConditionScheduled, metav1.ConditionFalse, policyv1alpha1.ReasonReleased,
		"No policy selects the object any more: its copies stay in the members as they are, until a policy selects it again or it is deleted")
}

// refuse says why the object cannot be placed as it is. What is in the members stays.
func (p *pass) refuse(now time.Time, format string, args ...any) error {
	p.set(now, policyv1alpha1.ConditionScheduled, metav1.ConditionFalse, policyv1alpha1.ReasonInvalidObject, fmt.Sprintf(format, args...))
	return errRefused
}

// removing says what a deleted internal placement waits for.
func (p *pass) removing(now time.Time, left []placementv1.BindingObject) {
	names := make([]string, 0, len(left))
	for _, b := range left {
		names = append(names, b.BindingSpec().TargetCluster)
	}
	slices.Sort(names)
	const most = 10
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	p.set(now, policyv1alpha1.ConditionScheduled, metav1.ConditionFalse, policyv1alpha1.ReasonRemoving,
		"The object was deleted: waiting for its copies to be removed from "+strings.Join(names, ", "))
}

// observe tells from the bindings how the object is in its clusters.
func (p *pass) observe(now time.Time) {
	p.status.ObservedGeneration = p.placement.GetGeneration()
	p.status.ClusterCount = int32(len(p.status.Clusters)) //nolint:gosec // a fleet has fewer than two thousand million clusters
	var items []policyv1alpha1.ClusterItem
	applied, available := 0, 0
	for _, b := range p.bindings {
		item := policyv1alpha1.ClusterItem{Name: b.BindingSpec().TargetCluster, Applied: metav1.ConditionUnknown, Available: metav1.ConditionUnknown}
		for _, t := range []string{placementv1.ConditionWorkSynchronized, placementv1.ConditionApplied, placementv1.ConditionAvailable} {
			c := meta.FindStatusCondition(b.BindingStatus().Conditions, t)
			if c == nil || c.ObservedGeneration != b.GetGeneration() {
				continue
			}
			switch t {
			case placementv1.ConditionApplied:
				item.Applied = c.Status
			case placementv1.ConditionAvailable:
				item.Available = c.Status
			}
			if c.Status != metav1.ConditionTrue && item.Message == "" {
				item.Message = c.Message
			}
		}
		if item.Applied == metav1.ConditionTrue {
			applied++
		}
		if item.Available == metav1.ConditionTrue {
			available++
			continue
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b policyv1alpha1.ClusterItem) int { return cmp.Compare(a.Name, b.Name) })
	p.status.Items = items[:min(len(items), itemsTold)]
	p.count(now, policyv1alpha1.ConditionApplied, policyv1alpha1.ReasonApplied, policyv1alpha1.ReasonApplying, "has been applied", applied, items)
	p.count(now, policyv1alpha1.ConditionAvailable, policyv1alpha1.ReasonAvailable, policyv1alpha1.ReasonNotAvailable, "is available", available, items)
}

// count says in how many clusters something is so.
func (p *pass) count(now time.Time, conditionType, done, waiting, what string, n int, items []policyv1alpha1.ClusterItem) {
	all := len(p.bindings)
	if all == 0 {
		meta.RemoveStatusCondition(&p.status.Conditions, conditionType)
		return
	}
	if n == all {
		p.set(now, conditionType, metav1.ConditionTrue, done, fmt.Sprintf("The object %s in all %d clusters", what, all))
		return
	}
	message := fmt.Sprintf("The object %s in %d of %d clusters", what, n, all)
	if i := slices.IndexFunc(items, func(i policyv1alpha1.ClusterItem) bool { return i.Message != "" }); i >= 0 {
		message += fmt.Sprintf("; %s: %s", items[i].Name, items[i].Message)
	}
	p.set(now, conditionType, metav1.ConditionFalse, waiting, message)
}
