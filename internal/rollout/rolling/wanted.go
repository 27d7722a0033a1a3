package rolling

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// Wanted is what a binding is to give its cluster. A binding that says something else is out of date; what of it differs
// makes no difference to the budget.
type Wanted struct {
	// Snapshot is the name of the newest master resource snapshot; empty while there is none, and then nothing is given.
	Snapshot string
}

// Differs says in what a binding that gives its cluster something is out of date, for a person; empty where it is not.
func (w Wanted) Differs(spec *placementv1.ResourceBindingSpec) string {
	if spec.ResourceSnapshotName != w.Snapshot {
		return fmt.Sprintf("the cluster is on %s, and %s is newer", spec.ResourceSnapshotName, w.Snapshot)
	}
	return ""
}

// Give makes a binding give its cluster what is wanted.
func (w Wanted) Give(spec *placementv1.ResourceBindingSpec) {
	spec.State = placementv1.BindingStateBound
	spec.ResourceSnapshotName = w.Snapshot
}
