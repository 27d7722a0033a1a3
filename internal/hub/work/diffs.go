package work

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// maxDetails is how many places of one object a binding lists.
	maxDetails = 100
	// detailBytes is how large the list of drifted objects, and that of differing ones, may each become, in bytes of JSON.
	detailBytes = 128 * 1024
)

// setDiffReported tells whether the member has compared everything.
func setDiffReported(w conditionWriter, o observed) {
	cluster := o.binding.BindingSpec().TargetCluster
	for _, work := range o.works {
		reported := current(work, placementv1.ConditionDiffReported)
		switch {
		case reported == nil || reported.Status == metav1.ConditionUnknown:
			w.set(placementv1.ConditionDiffReported, metav1.ConditionFalse, placementv1.ReasonDiffReportInProgress,
				fmt.Sprintf("The agent of cluster %q has not compared work object %s yet%s", cluster, work.Name, trouble(o.cluster)))
			return
		case reported.Status == metav1.ConditionFalse:
			w.set(placementv1.ConditionDiffReported, metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveDiffReported,
				fmt.Sprintf("Cluster %q has failed to compare work object %s: %s", cluster, work.Name,
					firstProblem(work, placementv1.ConditionDiffReported, reported.Message)))
			return
		}
	}
	message := "All corresponding work objects have been compared; nothing differs"
	if n := differing(o.works); n > 0 {
		message = fmt.Sprintf("All corresponding work objects have been compared; %d object(s) differ, see diffedPlacements", n)
	}
	w.set(placementv1.ConditionDiffReported, metav1.ConditionTrue, placementv1.ReasonAllWorkHaveDiffReported, message)
}

func differing(works []*placementv1.Work) int {
	count := 0
	for _, work := range works {
		for i := range work.Status.ManifestConditions {
			if work.Status.ManifestConditions[i].DiffDetails != nil {
				count++
			}
		}
	}
	return count
}

// driftedPlacements are the objects that were changed in the member, as it says of the Works as they are now.
func driftedPlacements(works []*placementv1.Work) []placementv1.DriftedResourcePlacement {
	var all []placementv1.DriftedResourcePlacement
	forEachAnswer(works, func(work *placementv1.Work, m *placementv1.ManifestCondition) {
		if d := m.DriftDetails; d != nil {
			all = append(all, placementv1.DriftedResourcePlacement{
				ResourceIdentifier: identifier(work, &m.Identifier), ObservationTime: d.ObservationTime, FirstDriftedObservedTime: d.FirstDriftedObservedTime,
				TargetClusterObservedGeneration: d.ObservedInMemberClusterGeneration, ObservedDrifts: quoted(d.ObservedDrifts),
			})
		}
	})
	slices.SortFunc(all, func(a, b placementv1.DriftedResourcePlacement) int {
		return compareIdentifiers(&a.ResourceIdentifier, &b.ResourceIdentifier)
	})
	all = all[:min(len(all), maxFailed)]
	return fitted(all, func(d *placementv1.DriftedResourcePlacement, n int) {
		d.ObservedDrifts = d.ObservedDrifts[:min(len(d.ObservedDrifts), n)]
	})
}

// diffedPlacements are the objects of which the member's differ from the hub's.
func diffedPlacements(works []*placementv1.Work) []placementv1.DiffedResourcePlacement {
	var all []placementv1.DiffedResourcePlacement
	forEachAnswer(works, func(work *placementv1.Work, m *placementv1.ManifestCondition) {
		if d := m.DiffDetails; d != nil {
			all = append(all, placementv1.DiffedResourcePlacement{
				ResourceIdentifier: identifier(work, &m.Identifier), ObservationTime: d.ObservationTime, FirstDiffedObservedTime: d.FirstDiffedObservedTime,
				TargetClusterObservedGeneration: d.ObservedInMemberClusterGeneration, ObservedDiffs: quoted(d.ObservedDiffs),
			})
		}
	})
	slices.SortFunc(all, func(a, b placementv1.DiffedResourcePlacement) int {
		return compareIdentifiers(&a.ResourceIdentifier, &b.ResourceIdentifier)
	})
	all = all[:min(len(all), maxFailed)]
	return fitted(all, func(d *placementv1.DiffedResourcePlacement, n int) {
		d.ObservedDiffs = d.ObservedDiffs[:min(len(d.ObservedDiffs), n)]
	})
}

// forEachAnswer visits what the member says of the manifests of Works as they are now.
func forEachAnswer(works []*placementv1.Work, visit func(*placementv1.Work, *placementv1.ManifestCondition)) {
	for _, work := range works {
		if current(work, placementv1.ConditionApplied) == nil && current(work, placementv1.ConditionDiffReported) == nil {
			continue
		}
		for i := range work.Status.ManifestConditions {
			visit(work, &work.Status.ManifestConditions[i])
		}
	}
}

func compareIdentifiers(a, b *placementv1.ResourceIdentifier) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
}

func quoted(details []placementv1.PatchDetail) []placementv1.PatchDetail {
	details = slices.Clone(details[:min(len(details), maxDetails)])
	for i := range details {
		d := &details[i]
		d.Path, d.ValueInMember, d.ValueInHub = placement.Quote(d.Path), placement.Quote(d.ValueInMember), placement.Quote(d.ValueInHub)
	}
	return details
}

// fitted shortens the lists of places until all is within its size. That an object differs, and one place where, matters
// more than every place.
func fitted[T any](all []T, shorten func(*T, int)) []T {
	for _, most := range []int{30, 10, 3, 1} {
		if data, err := json.Marshal(all); err != nil || len(data) <= detailBytes {
			break
		}
		for i := range all {
			shorten(&all[i], most)
		}
	}
	for len(all) > 0 {
		if data, err := json.Marshal(all); err != nil || len(data) <= detailBytes {
			break
		}
		all = all[:len(all)/2]
	}
	return all
}
