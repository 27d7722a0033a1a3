package apply

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// said is in what an object differs by the status so far, and what its own status was.
type said struct {
	drift    *placementv1.DriftDetails
	diff     *placementv1.DiffDetails
	mirrored *placementv1.BackReportedStatus
}

// detail puts into an entry of the status in what the object differs. Since when there is any difference stays known for as
// long as there is one, and when it was seen as it is for as long as it stays so.
func (p *pass) detail(m *manifest, entry *placementv1.ManifestCondition, before said) {
	now := metav1.NewTime(p.Clock.Now().Truncate(time.Second))
	if m.drift.differs() {
		d := &placementv1.DriftDetails{
			ObservationTime: now, FirstDriftedObservedTime: now, ObservedInMemberClusterGeneration: ptr.Deref(m.drift.generation, 0), ObservedDrifts: m.drift.details,
		}
		if last := before.drift; last != nil {
			d.FirstDriftedObservedTime = last.FirstDriftedObservedTime
			if equality.Semantic.DeepEqual(last.ObservedDrifts, d.ObservedDrifts) {
				d.ObservationTime, d.ObservedInMemberClusterGeneration = last.ObservationTime, last.ObservedInMemberClusterGeneration
			}
		}
		entry.DriftDetails = d
	}
	if m.diff.differs() {
		d := &placementv1.DiffDetails{
			ObservationTime: now, FirstDiffedObservedTime: now, ObservedInMemberClusterGeneration: m.diff.generation, ObservedDiffs: m.diff.details,
		}
		if last := before.diff; last != nil {
			d.FirstDiffedObservedTime = last.FirstDiffedObservedTime
			if equality.Semantic.DeepEqual(last.ObservedDiffs, d.ObservedDiffs) {
				d.ObservationTime, d.ObservedInMemberClusterGeneration = last.ObservationTime, last.ObservedInMemberClusterGeneration
			}
		}
		entry.DiffDetails = d
	}
}

// judgeDiff sets the condition of one manifest that was compared.
func (p *pass) judgeDiff(m *manifest, conditions *[]metav1.Condition, counts *tally) {
	meta.RemoveStatusCondition(conditions, placementv1.ConditionApplied)
	meta.RemoveStatusCondition(conditions, placementv1.ConditionAvailable)
	set := func(state metav1.ConditionStatus, reason, message string) {
		p.set(conditions, placementv1.ConditionDiffReported, state, reason, message)
	}
	switch {
	case m.reason != "":
		set(metav1.ConditionFalse, placementv1.ReasonManifestFailedToReportDiff, "An error blocks the diff reporting process ("+m.problem+")")
		return
	case !m.diff.differs():
		set(metav1.ConditionTrue, placementv1.ReasonManifestNoDiffFound, "No difference has been found between the hub's object and the member's")
	case m.diff.degraded:
		counts.differ++
		set(metav1.ConditionTrue, placementv1.ReasonManifestFoundDiffInDegradedMode, "The member's object differs from the hub's, or the member would not take the hub's; "+
			"compared as they stand, so that values which the member fills in may be among the differences")
	default:
		counts.differ++
		set(metav1.ConditionTrue, placementv1.ReasonManifestFoundDiff, "The member's object differs from the hub's; see diffDetails")
	}
	counts.reported++
}

// summarizeDiffs sets the conditions of a Work of which nothing is written.
func (p *pass) summarizeDiffs(status *placementv1.WorkStatus, counts tally, omitted int) {
	meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionApplied)
	meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionAvailable)
	if counts.reported < counts.total {
		p.set(&status.Conditions, placementv1.ConditionDiffReported, metav1.ConditionFalse, placementv1.ReasonSomeManifestsHaveNotReportedDiff,
			fmt.Sprintf("Failed to report diff on all manifests (%d of %d manifests have reported diff)%s", counts.reported, counts.total, notListed(omitted)))
		return
	}
	p.set(&status.Conditions, placementv1.ConditionDiffReported, metav1.ConditionTrue, placementv1.ReasonAllManifestsDiffReported,
		fmt.Sprintf("All the specified manifests have reported diff (%d of %d differ)%s", counts.differ, counts.total, notListed(omitted)))
}

// placesPerObject are the numbers of places that an object may list. Fewer are listed where all would not fit into the
// status: that an object differs, and one place where, matters more than every place.
var placesPerObject = []int{20, 5, 1, 0}

// trimDetails shortens the lists of places until the entries are within their size, and tells whether that was needed.
func trimDetails(entries []placementv1.ManifestCondition) (trimmed bool) {
	for _, most := range placesPerObject {
		if size(entries) <= maxStatus-reserve {
			return trimmed
		}
		for i := range entries {
			if d := entries[i].DriftDetails; d != nil && len(d.ObservedDrifts) > most {
				d.ObservedDrifts, trimmed = slices.Clone(d.ObservedDrifts[:most]), true
			}
			if d := entries[i].DiffDetails; d != nil && len(d.ObservedDiffs) > most {
				d.ObservedDiffs, trimmed = slices.Clone(d.ObservedDiffs[:most]), true
			}
		}
	}
	return trimmed
}

// tellTrimmed says on the Work whether something was left out.
func (p *pass) tellTrimmed(status *placementv1.WorkStatus, statuses int, places bool, omitted int) {
	if statuses == 0 && !places && omitted == 0 {
		meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionStatusTrimmed)
		return
	}
	message := fmt.Sprintf("The whole would take more than the %d KB that a Work's status may have", maxStatus/1024)
	if places {
		message += "; of what drifted or differs not all places are listed"
	}
	p.set(&status.Conditions, placementv1.ConditionStatusTrimmed, metav1.ConditionTrue, placementv1.ReasonOversized, message+notMirrored(statuses)+notListed(omitted))
}

func size(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return 0 // our own types, which can be encoded
	}
	return len(data)
}
