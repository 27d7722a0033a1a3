package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const policyName = "bench-policy"

// policies times edits of what policies place until the last member has them, and counts their writes.
func (b *bench) policies(ctx context.Context) error {
	if err := b.placeByPolicies(ctx); err != nil {
		return err
	}
	if err := b.policyConfigMap(ctx); err != nil {
		return err
	}
	return b.policyDeployment(ctx)
}

// placeByPolicies has a ConfigMap go to all members, and a Deployment's replicas divided among them.
func (b *bench) placeByPolicies(ctx context.Context) error {
	policy := func(name, apiVersion, kind string) *policyv1alpha1.PropagationPolicy {
		p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: policyName, Name: name}}
		p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind, Name: name}}
		return p
	}
	divided := policy("web", "apps/v1", "Deployment")
	divided.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.Divided}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: policyName}}, configMap(policyName, "0"), deployment(80),
		policy("settings", "v1", "ConfigMap"), divided,
	} {
		if err := b.hub.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	if err := b.everywhere(ctx, policyName, "0"); err != nil {
		return err
	}
	return b.eachDeployment(ctx, func(d *appsv1.Deployment) bool { return ptr.Deref(d.Spec.Replicas, 0) == int32(80/len(b.members)) }) //nolint:gosec // a share of 80
}

func deployment(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: policyName, Name: "web"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:0"}}},
		}},
	}
}

// eachDeployment waits until the Deployment is as it should be in every member.
func (b *bench) eachDeployment(ctx context.Context, done func(*appsv1.Deployment) bool) error {
	var wg sync.WaitGroup
	errs := make(chan error, len(b.members))
	for member, c := range b.members {
		wg.Go(func() {
			d := deployment(0)
			if err := b.until(ctx, c, d, func() bool { return done(d) }); err != nil {
				errs <- fmt.Errorf("wait for the Deployment in %s: %w", member, err)
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// measured makes a change again and again: how long each took, and how many writes for each member.
func (b *bench) measured(ctx context.Context, change func(round int) error) (took time.Duration, writes float64, err error) {
	var counts []int
	var all []time.Duration
	for round := range b.rounds {
		if err := b.settle(ctx); err != nil {
			return 0, 0, err
		}
		before, err := b.writes.read(ctx)
		if err != nil {
			return 0, 0, err
		}
		start := time.Now()
		if err := change(round + 1); err != nil {
			return 0, 0, err
		}
		all = append(all, time.Since(start))
		if err := b.settle(ctx); err != nil {
			return 0, 0, err
		}
		after, err := b.writes.read(ctx)
		if err != nil {
			return 0, 0, err
		}
		counts = append(counts, after.since(before).total())
	}
	return median(all), float64(median(counts)) / float64(len(b.members)), nil
}

func (b *bench) policyConfigMap(ctx context.Context) error {
	took, writes, err := b.measured(ctx, func(round int) error {
		value := "round-" + strconv.Itoa(round)
		if err := b.setValue(ctx, policyName, value); err != nil {
			return err
		}
		return b.everywhere(ctx, policyName, value)
	})
	if err != nil {
		return err
	}
	b.add(fmt.Sprintf("policy: edit of a ConfigMap on the hub to the last of %d members", len(b.members)), "≤ 0.1 s", "%.3f s", took.Seconds())
	b.add("policy: hub writes per cluster for that edit", "≤ 2, acknowledged", "%.1f", writes)
	return nil
}

func (b *bench) policyDeployment(ctx context.Context) error {
	took, writes, err := b.measured(ctx, func(round int) error {
		image := "web:" + strconv.Itoa(round)
		patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, image)
		if err := b.hub.Patch(ctx, deployment(0), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			return fmt.Errorf("change the Deployment's template: %w", err)
		}
		return b.eachDeployment(ctx, func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == image })
	})
	if err != nil {
		return err
	}
	b.add(fmt.Sprintf("policy: template edit of a Deployment, last of %d", len(b.members)), "≤ 0.2 s, ≤ 3 writes", "%.3f s, %.1f writes", took.Seconds(), writes)

	var times []time.Duration
	for range b.rounds {
		for _, replicas := range []int{800, 80} {
			if err := b.settle(ctx); err != nil {
				return err
			}
			start := time.Now()
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
			if err := b.hub.Patch(ctx, deployment(0), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
				return fmt.Errorf("scale the Deployment: %w", err)
			}
			share := int32(replicas / len(b.members)) //nolint:gosec // a share of 800
			if err := b.eachDeployment(ctx, func(d *appsv1.Deployment) bool { return ptr.Deref(d.Spec.Replicas, 0) == share }); err != nil {
				return err
			}
			if replicas == 800 {
				times = append(times, time.Since(start))
			}
		}
	}
	slices.Sort(times)
	b.add(fmt.Sprintf("policy: scale 80 to 800 over %d members, the last right", len(b.members)), "≤ 0.5 s", "%.3f s", median(times).Seconds())
	return nil
}
