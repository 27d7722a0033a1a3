package explain

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/schedule"
)

// printExplanations prints the sum of it, and then a line for every cluster.
func printExplanations(out io.Writer, title string, r *schedule.Request, explanations []schedule.Explanation, result *schedule.Result) {
	fmt.Fprintf(out, "%s, %s: %s\n", title, asks(r), result.Message())
	if len(explanations) == 0 {
		fmt.Fprintln(out, "The fleet has no clusters.")
		return
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	scored := r.Policy.Type() == placementv1.PickNPlacementType
	columns := []string{"CLUSTER", "CHOSEN", "WHY"}
	if scored {
		columns = []string{"CLUSTER", "CHOSEN", "AFFINITY", "SPREAD", "WHY"}
	}
	fmt.Fprintln(table, strings.Join(columns, "\t"))
	for i := range explanations {
		e := &explanations[i]
		cells := []string{e.ClusterName, "no"}
		if e.Selected {
			cells[1] = "yes"
		}
		if scored {
			affinity, spread := scores(e.ClusterScore)
			cells = append(cells, affinity, spread)
		}
		why := strings.Join(append([]string{e.Reason}, e.Notes...), "; ")
		fmt.Fprintln(table, strings.Join(append(cells, why), "\t"))
	}
	table.Flush()
}

// asks says in short what the policy asks for.
func asks(r *schedule.Request) string {
	switch t := r.Policy.Type(); t {
	case placementv1.PickNPlacementType:
		return fmt.Sprintf("%s of %d", t, r.Number)
	case placementv1.PickFixedPlacementType:
		return fmt.Sprintf("%s of %d", t, len(r.Policy.ClusterNames))
	default:
		return string(t)
	}
}

func scores(s *placementv1.ClusterScore) (affinity, spread string) {
	affinity, spread = "-", "-"
	if s == nil {
		return affinity, spread
	}
	if s.AffinityScore != nil {
		affinity = fmt.Sprint(*s.AffinityScore)
	}
	if s.TopologySpreadScore != nil {
		spread = fmt.Sprint(*s.TopologySpreadScore)
	}
	return affinity, spread
}
