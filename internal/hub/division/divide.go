package division

import (
	"context"
	"fmt"
	"slices"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/schedule"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// divide decides which clusters have the object and how many replicas each, and writes the bindings that follow.
func (c *Controller) divide(ctx context.Context, p *pass) error {
	var members clusterv1.MemberClusterList
	if err := c.Client.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the MemberClusters: %w", err)
	}
	shares := map[string]share{}
	p.status.Clusters = nil
	for i := range members.Items {
		cluster := schedule.Observe(&members.Items[i])
		if a := p.spec().Placement.ClusterAffinity; a != nil && len(a.ClusterNames) > 0 && !slices.Contains(a.ClusterNames, cluster.Name) {
			continue
		}
		shares[cluster.Name] = share{cluster: &cluster, replicas: p.replicas, reason: "draft"}
		p.status.Clusters = append(p.status.Clusters, policyv1alpha1.ClusterShare{Name: cluster.Name, Replicas: p.replicas})
	}
	p.set(c.Clock.Now(), policyv1alpha1.ConditionScheduled, metav1.ConditionTrue, policyv1alpha1.ReasonScheduled, "decided")
	return c.bind(ctx, p, shares)
}
