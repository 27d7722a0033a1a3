package division

import (
	"context"
	"fmt"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"github.com/fleetwright/fleetwright/internal/schedule/clusteraffinity"
	"github.com/fleetwright/fleetwright/internal/schedule/division"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	podresource "k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fleet is all members, as division and as bindings know them.
type fleet struct {
	clusters []division.Cluster
	known    map[string]*schedule.Cluster
}

// observe looks at the fleet for the sake of one object.
func (c *Controller) observe(ctx context.Context, p *pass) (*fleet, error) {
	var members clusterv1.MemberClusterList
	if err := c.Client.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the MemberClusters: %w", err)
	}
	request, err := perReplica(p.object)
	if err != nil {
		return nil, err
	}
	f := &fleet{known: make(map[string]*schedule.Cluster, len(members.Items))}
	for i := range members.Items {
		m := schedule.Observe(&members.Items[i])
		f.known[m.Name] = &m
		where := clusteraffinity.Locate(m.Name, m.Labels)
		f.clusters = append(f.clusters, division.Cluster{
			Name: m.Name, Labels: m.Labels, Provider: where.Provider, Region: where.Region, Zones: where.Zones, Taints: taints(m.Taints), Leaving: m.Leaving, Disconnected: m.Disconnected,
			Suspended: suspended(p.spec().Suspension, m.Name),
			Room:      room(&m, request),
		})
	}
	return f, nil
}

func taints(of []clusterv1.Taint) []corev1.Taint {
	all := make([]corev1.Taint, len(of))
	for i := range of {
		all[i] = corev1.Taint{Key: of[i].Key, Value: of[i].Value, Effect: corev1.TaintEffect(of[i].Effect)}
	}
	return all
}

// perReplica is what one replica of a workload asks for; empty where it asks for nothing, or is no workload.
func perReplica(o *unstructured.Unstructured) (corev1.ResourceList, error) {
	fields, found, err := unstructured.NestedMap(o.Object, "spec", "template")
	if err != nil || !found {
		return corev1.ResourceList{}, nil //nolint:nilerr // what has no pod template asks for nothing
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &template); err != nil {
		return nil, fmt.Errorf("read the pod template of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return podresource.PodRequests(&corev1.Pod{Spec: template.Spec}, podresource.PodResourcesOptions{}), nil
}

// room is how many more replicas a cluster holds, by what its agent says is free in it.
func room(c *schedule.Cluster, request corev1.ResourceList) int64 {
	if len(c.Usage.Available) == 0 {
		return division.UnknownRoom
	}
	least := int64(-1)
	for name, asks := range request {
		if asks.IsZero() {
			continue
		}
		free, listed := c.Usage.Available[name]
		n := int64(0)
		if listed {
			n = times(free, asks)
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return least
}

// times is how often one quantity is in another.
func times(free, asks resource.Quantity) int64 {
	if free.MilliValue() <= 0 {
		return 0
	}
	return free.MilliValue() / asks.MilliValue()
}
