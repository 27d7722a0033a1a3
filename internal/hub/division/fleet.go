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
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fleet is all members, as division and as bindings know them.
type fleet struct {
	clusters []division.Cluster
	known    map[string]*schedule.Cluster
	// perReplica is what one replica of the object asks for.
	perReplica corev1.ResourceList
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
	f := &fleet{known: make(map[string]*schedule.Cluster, len(members.Items)), perReplica: request}
	observed := schedule.ObserveAll(members.Items)
	for i := range observed {
		m := &observed[i]
		f.known[m.Name] = m
		where := clusteraffinity.Locate(m.Name, m.Labels)
		f.clusters = append(f.clusters, division.Cluster{
			Name: m.Name, Labels: m.Labels, Provider: where.Provider, Region: where.Region, Zones: where.Zones, Taints: taints(m.Taints), Leaving: m.Leaving, Disconnected: m.Disconnected,
			Suspended: suspended(p.spec().Suspension, m.Name),
			Room:      division.UnknownRoom,
		})
	}
	return f, nil
}

// measure tells how much room each cluster has, beside what it was given and does not report to be in use yet. It is called with the
// ledger locked.
func (c *Controller) measure(p *pass, f *fleet) {
	news, given := false, p.given()
	for cluster, t := range p.told {
		if share, has := given[cluster]; has {
			news = c.Ledger.Give(p.object.GetUID(), cluster, f.perReplica, share, t.made) || news
		}
	}
	if news {
		c.waiting.tell(p.key(), c.objects.Add)
	}
	for i := range f.clusters {
		m := f.known[f.clusters[i].Name]
		f.clusters[i].Room = room(c.Ledger.Free(m.Name, m.Usage.Available, m.Usage.ObservationTime.Time), f.perReplica)
	}
}

// forget drops from the ledger what an object was given that is gone.
func (c *Controller) forget(object types.UID) {
	c.Ledger.Lock()
	defer c.Ledger.Unlock()
	c.Ledger.Forget(object, nil)
}

// given is how many replicas each cluster has been given, as was decided last.
func (p *pass) given() map[string]int32 {
	given := make(map[string]int32, len(p.status.Clusters))
	for _, s := range p.status.Clusters {
		given[s.Name] = ptr.Deref(s.Replicas, 0)
	}
	return given
}

// settle puts down in the ledger what was decided. It is called with the ledger locked.
func (c *Controller) settle(p *pass, f *fleet) {
	given := p.given()
	c.Ledger.Forget(p.object.GetUID(), func(cluster string) bool { _, has := given[cluster]; return has })
	for cluster, share := range given {
		c.Ledger.Give(p.object.GetUID(), cluster, f.perReplica, share, p.told[cluster].made)
	}
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

// room is how many more replicas a cluster holds, by what is free in it.
func room(available, request corev1.ResourceList) int64 {
	if len(available) == 0 {
		return division.UnknownRoom
	}
	least := int64(-1)
	for name, asks := range request {
		if asks.IsZero() {
			continue
		}
		free, listed := available[name]
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
