package rollup

import (
	"fmt"

	"github.com/fleetwright/fleetwright/internal/placement"
)

// FoundNothing says which selectors of the placement find nothing, and what to do about it; "" where all find something, or
// it is not known. A selector that finds nothing is no failure, since what it selects may come later; but nobody should
// have to guess why it was not placed.
func FoundNothing(in Input) string {
	r := newRollup(in)
	index := r.observedIndex()
	if in.Selected.Unreadable {
		index = ""
	}
	return r.foundNothing(index)
}

func (r *rollup) foundNothing(observedIndex string) string {
	selectors, source, remedy := r.Unmatched, "on the hub", "create what they are to select, or correct them"
	if r.external {
		selectors, source = r.unmatchedIn(observedIndex), "in resource snapshot "+observedIndex
		remedy += fmt.Sprintf(", and make a %s without resourceSnapshotIndex", r.Kinds.UpdateRun)
	}
	if len(selectors) == 0 {
		return ""
	}
	described := make([]string, len(selectors))
	for i, s := range selectors {
		described[i] = s.Where()
	}
	text := fmt.Sprintf("nothing %s is selected by %s: %s", source, names(described), remedy)
	if len(selectors) == len(r.Placement.PlacementSpec().ResourceSelectors) {
		text = "nothing is placed, since " + text
	}
	return text
}

// unmatchedIn returns the selectors that found nothing of what is in the resource snapshot that the status describes. Where
// selectors by label, or of a whole kind, share a kind, it cannot tell which of them found what is there of it.
func (r *rollup) unmatchedIn(observedIndex string) []placement.Selector {
	if observedIndex == "" || int(r.Selected.Count) != len(r.Selected.Resources) {
		return nil
	}
	selectors, err := placement.ParseSelectors(r.Placement, placement.Rules{})
	if err != nil {
		return nil // which the status says
	}
	var unmatched []placement.Selector
	for _, s := range selectors {
		found := false
		for _, id := range r.Selected.Resources {
			found = found || s.MayHaveFound(id)
		}
		if !found {
			unmatched = append(unmatched, s)
		}
	}
	return unmatched
}
