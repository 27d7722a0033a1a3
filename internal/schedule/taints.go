package schedule

import (
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// isTolerated refuses clusters with a taint that the policy does not tolerate, unless they hold the placement already.
type isTolerated struct{ r *Request }

func (p isTolerated) Allows(c *Cluster) bool {
	return len(c.Taints) == 0 || p.untolerated(c) == nil || p.r.holds(c.Name)
}

// untolerated is the first taint of a cluster that is not tolerated; nil where all are.
func (p isTolerated) untolerated(c *Cluster) *clusterv1.Taint {
	for i := range c.Taints {
		if !p.tolerates(&c.Taints[i]) {
			return &c.Taints[i]
		}
	}
	return nil
}

func (p isTolerated) tolerates(taint *clusterv1.Taint) bool {
	if p.r.Policy == nil {
		return false
	}
	for i := range p.r.Policy.Tolerations {
		t := &p.r.Policy.Tolerations[i]
		switch {
		case t.Effect != "" && t.Effect != string(taint.Effect):
		case t.Key != taint.Key && t.Key != "":
		case t.Operator == placementv1.TolerationExists || (t.Key == taint.Key && t.Value == taint.Value):
			return true
		}
	}
	return false
}

func (p isTolerated) Reason(c *Cluster) string {
	t := p.untolerated(c)
	if t == nil {
		return "" // it would not be asked
	}
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return fmt.Sprintf("taint {%s:%s} cannot be tolerated", text, t.Effect)
}

func (isTolerated) Summary() (what, remedy string) {
	return "with a taint that is not tolerated", "tolerate the taints or take them off"
}
