package work

import (
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxFailed is how many objects a binding lists that failed.
const maxFailed = 100

// failedPlacements are the objects that could not be overridden, then those that the member could not apply, and after them
// those that are not available, in the order of the Works. Only what was said of the Works as they are now counts. overridden is
// the binding's condition.
func failedPlacements(works []*placementv1.Work, overridden *metav1.Condition) []placementv1.FailedResourcePlacement {
	var unchanged, unapplied, unavailable []placementv1.FailedResourcePlacement
	for _, work := range works {
		for _, f := range render.FailedOverridesOf(work) {
			id := f.Object
			if id.Kind == "" {
				continue // which one is not known; the condition's message has what is
			}
			id.Envelope = envelopeOf(work)
			condition := *overridden
			condition.Message = f.Message
			unchanged = append(unchanged, placementv1.FailedResourcePlacement{ResourceIdentifier: id, Condition: condition})
		}
		if current(work, placementv1.ConditionApplied) == nil && current(work, placementv1.ConditionDiffReported) == nil {
			continue
		}
		for i := range work.Status.ManifestConditions {
			m := &work.Status.ManifestConditions[i]
			if c := fails(m, placementv1.ConditionDiffReported); c != nil {
				unapplied = append(unapplied, failed(work, &m.Identifier, c))
			} else if c := fails(m, placementv1.ConditionApplied); c != nil {
				if !placementv1.IsAboutToBeApplied(c.Reason) {
					unapplied = append(unapplied, failed(work, &m.Identifier, c))
				}
			} else if c := fails(m, placementv1.ConditionAvailable); c != nil {
				unavailable = append(unavailable, failed(work, &m.Identifier, c))
			}
		}
	}
	all := slices.Concat(unchanged, unapplied, unavailable)
	return all[:min(len(all), maxFailed)]
}

// fails returns a condition of a manifest that is False.
func fails(m *placementv1.ManifestCondition, conditionType string) *metav1.Condition {
	if c := meta.FindStatusCondition(m.Conditions, conditionType); c != nil && c.Status == metav1.ConditionFalse {
		return c
	}
	return nil
}

func failed(work *placementv1.Work, id *placementv1.WorkResourceIdentifier, c *metav1.Condition) placementv1.FailedResourcePlacement {
	condition := *c
	condition.Message = placement.Quote(condition.Message)
	return placementv1.FailedResourcePlacement{ResourceIdentifier: identifier(work, id), Condition: condition}
}

// identifier names an object as its member does.
func identifier(work *placementv1.Work, id *placementv1.WorkResourceIdentifier) placementv1.ResourceIdentifier {
	return placementv1.ResourceIdentifier{
		Group: placement.Quote(id.Group), Version: placement.Quote(id.Version), Kind: placement.Quote(id.Kind),
		Name: placement.Quote(id.Name), Namespace: placement.Quote(id.Namespace), Envelope: envelopeOf(work),
	}
}

// hasFailedManifest tells whether the availability of an object cannot be told, which is a failure and not a wait.
func hasFailedManifest(status *placementv1.ResourceBindingStatus) bool {
	return slices.ContainsFunc(status.FailedPlacements, func(f placementv1.FailedResourcePlacement) bool {
		return f.Condition.Type == placementv1.ConditionAvailable && f.Condition.Reason == placementv1.ReasonManifestAvailabilityFailed
	})
}

// firstProblem describes the first object of a Work whose condition is False, and says how many more there are.
func firstProblem(work *placementv1.Work, conditionType, otherwise string) string {
	return first(work, conditionType, otherwise, func(c *metav1.Condition) bool { return !placementv1.IsAboutToBeApplied(c.Reason) })
}

// firstAwaited does so for the objects that the member is about to apply.
func firstAwaited(work *placementv1.Work, otherwise string) string {
	return first(work, placementv1.ConditionApplied, otherwise, func(c *metav1.Condition) bool { return placementv1.IsAboutToBeApplied(c.Reason) })
}

func first(work *placementv1.Work, conditionType, otherwise string, counts func(*metav1.Condition) bool) string {
	var first string
	count := 0
	for i := range work.Status.ManifestConditions {
		m := &work.Status.ManifestConditions[i]
		c := fails(m, conditionType)
		if c == nil || !counts(c) {
			continue
		}
		if count++; count == 1 {
			first = placement.Quote(objectName(&m.Identifier) + ": " + c.Message)
		}
	}
	switch count {
	case 0:
		return placement.Quote(otherwise)
	case 1:
		return first
	default:
		return fmt.Sprintf("%s (and %d more)", first, count-1)
	}
}

func objectName(id *placementv1.WorkResourceIdentifier) string {
	if id.Kind == "" {
		return fmt.Sprintf("object %d", id.Ordinal)
	}
	return placement.ObjectName(id.Kind, id.Namespace, id.Name)
}
