package division

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// refuse says whether a cluster may not be given the object: why, and the same of a number of clusters, as what follows the
// number. Both are empty for one that may.
func (d *divider) refuse(c *candidate) (why, what string) {
	switch {
	case c.Leaving:
		return reasonLeaving, "left the fleet"
	case c.frozen:
		return "", ""
	case c.Suspended:
		return "the policy suspends the cluster: nothing is written to it", "suspended"
	case len(c.groups) == 0:
		return "no cluster affinity of the policy matches the cluster", "not matched by the policy's cluster affinity"
	case c.held:
		return d.refuseGroupless(c)
	case c.Disconnected != "":
		return "cluster is not connected to the fleet: " + c.Disconnected, "not connected to the fleet"
	}
	if taint := d.untolerated(c.Cluster); taint != nil {
		return fmt.Sprintf("taint {%s} cannot be tolerated", taint.ToString()), "with a taint that is not tolerated"
	}
	if kind := d.r.Kind; !kind.Empty() && c.Kinds != nil && !c.Kinds.Has(kind) {
		return fmt.Sprintf("cluster does not serve %s of %s", kind.Kind, kind.GroupVersion()), fmt.Sprintf("not serving %s of %s", kind.Kind, kind.GroupVersion())
	}
	return d.refuseGroupless(c)
}

// refuseGroupless refuses clusters that belong to no group by which the policy spreads.
func (d *divider) refuseGroupless(c *candidate) (why, what string) {
	for _, s := range d.spread() {
		if len(s.groups(c.Cluster)) == 0 {
			return fmt.Sprintf("cluster has no %s, by which the policy spreads", s.what()), "without a " + s.what() + " to spread by"
		}
	}
	return "", ""
}

// untolerated is the first taint that keeps the object off; nil where none does.
func (d *divider) untolerated(c *Cluster) *corev1.Taint {
	for i := range c.Taints {
		taint := &c.Taints[i]
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if !tolerated(taint, d.r.Policy.Tolerations) {
			return taint
		}
	}
	return nil
}

func tolerated(taint *corev1.Taint, by []corev1.Toleration) bool {
	for i := range by {
		if by[i].ToleratesTaint(klog.Logger{}, taint, false) {
			return true
		}
	}
	return false
}
