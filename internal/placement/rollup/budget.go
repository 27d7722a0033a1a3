package rollup

import (
	"encoding/json"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
)

const (
	// Budget is the size that no status exceeds, in bytes of JSON.
	Budget = 512 * 1024
	// MaxSelected is how many selected resources a status lists.
	MaxSelected = 2000
	// maxSelectedBytes keeps long names of selected resources from pushing the clusters out.
	maxSelectedBytes = 160 * 1024
	// maxConditionMessage and maxRowMessage are how long messages may be, in bytes.
	maxConditionMessage, maxRowMessage = 4096, 1024
)

// shapes are how much a row may tell. When not all rows fit into the status, shorter ones are tried before any is left out:
// that a cluster fails, and one reason why, matters more than every reason.
var shapes = []shape{{100, 100}, {100, 20}, {10, 10}, {3, 3}, {1, 1}}

// shape is how many objects a row may have that failed, drifted or differ, and how many places of each of the latter.
type shape struct{ objects, places int }

// fit puts as many of the clusters into the status as its budget allows, and counts the others. Rows of clusters that were not
// found come after them, and are few.
func fit(status *placementv1.PlacementStatus, clusters []*cluster, unfilled []placementv1.PerClusterPlacementStatus) {
	status.SelectedResources = fitSelected(status.SelectedResources)
	status.ClusterSummary.Omitted = int32(len(clusters)) //nolint:gosec // a fleet has fewer than 2^31 clusters
	room := Budget - size(status) - len(`,"placementStatuses":[]`)
	for i := range unfilled {
		room -= size(unfilled[i]) + len(",")
	}
	var rows []placementv1.PerClusterPlacementStatus
	for _, s := range shapes {
		if rows = fitRows(clusters, s, room); len(rows) == len(clusters) {
			break
		}
	}
	status.ClusterSummary.Omitted -= int32(len(rows)) //nolint:gosec // see above
	status.PlacementStatuses = slices.Concat(rows, unfilled)
}

func fitRows(clusters []*cluster, s shape, room int) []placementv1.PerClusterPlacementStatus {
	var rows []placementv1.PerClusterPlacementStatus
	for _, c := range clusters {
		row := c.row(s)
		if room -= size(row) + len(","); room < 0 {
			break
		}
		rows = append(rows, row)
	}
	return rows
}

func fitSelected(selected []placementv1.ResourceIdentifier) []placementv1.ResourceIdentifier {
	if len(selected) > MaxSelected {
		selected = selected[:MaxSelected]
	}
	room := maxSelectedBytes
	for i := range selected {
		if room -= size(selected[i]) + len(","); room < 0 {
			return selected[:i]
		}
	}
	return selected
}

// row is what the status tells of a cluster.
func (c *cluster) row(s shape) placementv1.PerClusterPlacementStatus {
	row := placementv1.PerClusterPlacementStatus{
		ClusterName:           c.name,
		ObservedResourceIndex: c.index,
		Conditions:            slices.Clone(c.conditions),

		ApplicableClusterResourceOverrides: c.overrides.ClusterResourceOverrideSnapshots,
		ApplicableResourceOverrides:        c.overrides.ResourceOverrideSnapshots,
	}
	for i := range row.Conditions {
		row.Conditions[i].Message = placement.Cut(row.Conditions[i].Message, maxRowMessage)
	}
	if shown := min(len(c.failed), s.objects); shown > 0 {
		row.FailedPlacements = slices.Clone(c.failed[:shown])
		for i := range row.FailedPlacements {
			row.FailedPlacements[i].Condition.Message = placement.Cut(row.FailedPlacements[i].Condition.Message, maxRowMessage)
		}
	}
	row.DriftedPlacements = slices.Clone(c.drifted[:min(len(c.drifted), s.objects)])
	for i := range row.DriftedPlacements {
		d := &row.DriftedPlacements[i]
		d.ObservedDrifts = d.ObservedDrifts[:min(len(d.ObservedDrifts), s.places)]
	}
	row.DiffedPlacements = slices.Clone(c.diffed[:min(len(c.diffed), s.objects)])
	for i := range row.DiffedPlacements {
		d := &row.DiffedPlacements[i]
		d.ObservedDiffs = d.ObservedDiffs[:min(len(d.ObservedDiffs), s.places)]
	}
	return row
}

func size(v any) int {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic("encode part of a placement's status: " + err.Error()) // our own types, which can be encoded
	}
	return len(encoded)
}
