package schedule

import (
	"fmt"
	"slices"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// Explanation is, for a person, why a cluster is chosen or not.
type Explanation struct {
	placementv1.ClusterDecision
	// Holds tells that the cluster holds the placement now.
	Holds bool
	// Notes are what there is to say beside the decision: what a cluster keeps although it is not fit any more, what it loses,
	// and what it reports of the properties that the policy speaks of.
	Notes []string
}

// Explain is Decide, with a word on every cluster of the fleet: the chosen ones first, each part sorted by name.
func Explain(r Request, fleet Fleet) ([]Explanation, Result, error) {
	result, err := Decide(r, fleet)
	if err != nil {
		return nil, result, err
	}
	anew := r
	anew.Holders = nil
	fresh, err := Decide(anew, fleet)
	if err != nil {
		return nil, result, err
	}
	var all []Explanation
	for _, d := range result.All() {
		e := Explanation{ClusterDecision: d, Holds: r.holds(d.ClusterName)}
		rule := fresh.ruleFor(d.ClusterName)
		_, outscored := rule.(scoresEnough)
		switch {
		case e.Holds && !d.Selected:
			e.Notes = append(e.Notes, "what was placed there is removed")
		case e.Holds && rule != nil && !outscored:
			e.Notes = append(e.Notes, "it keeps what was placed there, though now: "+fresh.refused(d.ClusterName))
		case r.Holders[d.ClusterName].Removing:
			e.Notes = append(e.Notes, "what was placed there earlier is being removed")
		}
		if reported := reports(&r, fleet.Cluster(d.ClusterName)); reported != "" {
			e.Notes = append(e.Notes, reported)
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b Explanation) int { return number(b.Selected) - number(a.Selected) })
	return all, result, nil
}

// ruleFor is the rule that refused a cluster; nil for one that is chosen.
func (r *Result) ruleFor(cluster string) Rule {
	if i := slices.IndexFunc(r.unselected, func(d refused) bool { return d.cluster.Name == cluster }); i >= 0 {
		return r.unselected[i].rule
	}
	return nil
}

// reports says what a cluster reports of the properties that the policy speaks of.
func reports(r *Request, c *Cluster) string {
	if c == nil {
		return ""
	}
	names := propertiesOf(r.Policy)
	slices.Sort(names)
	var parts []string
	for _, name := range slices.Compact(names) {
		if text, found := parseProperty(name).of(c); found {
			parts = append(parts, fmt.Sprintf("%s is %s", name, text))
		} else {
			parts = append(parts, name+" is not reported")
		}
	}
	return strings.Join(parts, ", ")
}
