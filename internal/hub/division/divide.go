package division

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/schedule/division"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// divide decides which clusters have the object and how many replicas each, says so, and writes the bindings that follow. What
// was decided is in the status before anything follows from it, so that a hub that stops in between goes on with the same.
func (c *Controller) divide(ctx context.Context, p *pass) error {
	if ptr.Deref(ptr.Deref(p.spec().Suspension, policyv1alpha1.Suspension{}).Scheduling, false) {
		p.set(c.Clock.Now(), policyv1alpha1.ConditionScheduled, metav1.ConditionFalse, policyv1alpha1.ReasonSchedulingSuspended,
			"The policy holds decisions back: nothing is changed in the members until spec.suspension.scheduling is taken off it")
		return nil
	}
	policy, err := asked(&p.spec().Placement)
	if err != nil {
		p.set(c.Clock.Now(), policyv1alpha1.ConditionScheduled, metav1.ConditionFalse, policyv1alpha1.ReasonInvalidPolicy, err.Error())
		return nil
	}
	f, err := c.observe(ctx, p)
	if err != nil {
		return err
	}
	if err := c.listen(ctx, p); err != nil {
		return err
	}
	p.status.ObjectGeneration = p.object.GetGeneration()
	if at, asked := p.object.GetAnnotations()[policyv1alpha1.AnnotationRebalance]; asked && policyv1alpha1.RebalanceAsked(p.object.GetAnnotations()) == nil {
		p.notes = append(p.notes, fmt.Sprintf("its annotation %s is %q, which is no RFC 3339 time such as 2026-01-31T12:00:00Z, and asks for nothing", policyv1alpha1.AnnotationRebalance, at))
	}
	decided := slices.Clone(p.status.Clusters)
	result := c.decide(p, f, policy)
	if !equality.Semantic.DeepEqual(decided, p.status.Clusters) {
		if err := c.report(ctx, p); err != nil {
			return err
		}
	}
	shares := map[string]share{}
	for _, d := range result.Decisions {
		if !d.Selected || f.known[d.Cluster] == nil {
			continue
		}
		s := share{cluster: f.known[d.Cluster], reason: d.Reason}
		if p.replicas != nil {
			s.replicas = ptr.To(d.Replicas)
		}
		shares[d.Cluster] = s
	}
	if result.Frozen {
		p.stay(f, shares)
	} else {
		c.move(p, f, shares)
	}
	return c.bind(ctx, p, shares)
}

// decide divides. Where that goes by the room that clusters have, no other decision is made at the same time.
func (c *Controller) decide(p *pass, f *fleet, policy division.Policy) division.Result {
	if policy.Strategy.LooksAtRoom() && p.replicas != nil {
		c.Ledger.Lock()
		defer c.Ledger.Unlock()
		c.measure(p, f)
		defer c.settle(p, f)
	} else {
		c.forget(p.object.GetUID()) // it may have been divided by room before
	}
	request := p.request(f, policy)
	result := c.deschedule(p, request, division.Divide(request))
	p.decide(c.Clock.Now(), &result)
	shortage := (*division.Shortage)(nil)
	c.waiting.set(p.key(), errors.As(result.Problem, &shortage))
	return result
}

// request asks for a division.
func (p *pass) request(f *fleet, policy division.Policy) division.Request {
	return division.Request{
		UID: p.object.GetUID(), Kind: p.object.GroupVersionKind(), Policy: policy, Replicas: p.replicas,
		Clusters: f.clusters, Current: p.given(), Decided: p.status.DecidedFor, Affinity: p.status.AffinityName, Rebalance: p.rebalances(),
		InRelease: p.releasing(),
	}
}

// rebalances tells whether a rebalancing is asked for that has not been made.
func (p *pass) rebalances() bool {
	asked, last := p.spec().RebalanceTriggeredAt, p.status.LastRebalance
	return asked != nil && (last == nil || last.TriggeredAt.Before(asked))
}

// decide puts into the status what was decided, or why nothing was.
func (p *pass) decide(now time.Time, result *division.Result) {
	if result.Problem != nil {
		reason := policyv1alpha1.ReasonNoClusterFit
		if shortage := (*division.Shortage)(nil); errors.As(result.Problem, &shortage) {
			reason = policyv1alpha1.ReasonUnschedulable
		} else if mistake := (*division.PolicyError)(nil); errors.As(result.Problem, &mistake) {
			reason = policyv1alpha1.ReasonInvalidPolicy
		}
		p.set(now, policyv1alpha1.ConditionScheduled, metav1.ConditionFalse, reason, result.Problem.Error())
		return
	}
	before := p.status.Clusters
	p.status.Clusters = make([]policyv1alpha1.ClusterShare, 0, len(result.Shares))
	for _, s := range result.Shares {
		cluster := policyv1alpha1.ClusterShare{Name: s.Cluster}
		if p.replicas != nil {
			cluster.Replicas = ptr.To(s.Replicas)
		}
		p.status.Clusters = append(p.status.Clusters, cluster)
	}
	p.status.AffinityName = result.Affinity
	message := fmt.Sprintf("The object goes to %d clusters", len(result.Shares))
	if result.Frozen {
		message += "; they are not decided anew until the release in progress is over"
	} else {
		p.status.DecidedFor = p.replicas
	}
	if notes := slices.Concat(p.notes, result.Notes); len(notes) > 0 {
		message += "; " + strings.Join(notes, "; ")
	}
	p.set(now, policyv1alpha1.ConditionScheduled, metav1.ConditionTrue, policyv1alpha1.ReasonScheduled, message)
	if p.rebalances() && !result.Frozen {
		changed := !equality.Semantic.DeepEqual(before, p.status.Clusters)
		p.status.LastRebalance = &policyv1alpha1.Rebalance{TriggeredAt: *p.spec().RebalanceTriggeredAt, Changed: changed, Message: moved(before, p.status.Clusters)}
	}
}

// moved says which shares a rebalancing has changed.
func moved(before, after []policyv1alpha1.ClusterShare) string {
	was := map[string]int32{}
	for _, s := range before {
		was[s.Name] = ptr.Deref(s.Replicas, 0)
	}
	var all []string
	for _, s := range after {
		if n, there := was[s.Name]; !there || n != ptr.Deref(s.Replicas, 0) {
			all = append(all, fmt.Sprintf("%s from %d to %d", s.Name, n, ptr.Deref(s.Replicas, 0)))
		}
		delete(was, s.Name)
	}
	for name, n := range was {
		all = append(all, fmt.Sprintf("%s from %d to none", name, n))
	}
	if len(all) == 0 {
		return "every cluster has the share already that it would get"
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
