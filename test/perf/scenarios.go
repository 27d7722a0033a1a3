package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/quickstart"
	"github.com/fleetwright/fleetwright/test/framework"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const stages = 3

// updateRuns times runs over all members in three stages at 50 % without gates, and counts their writes.
func (b *bench) updateRuns(ctx context.Context) error {
	const name = "bench-run"
	if err := b.place(ctx, name, placementv1.ExternalRolloutStrategyType); err != nil {
		return err
	}
	if err := b.createStages(ctx, name); err != nil {
		return err
	}
	var times []time.Duration
	var perCluster []int
	var writes []writeCounts
	var begun time.Time
	for round := range b.rounds + 1 { // the first, which makes everything, is set-up and not counted
		if err := b.setValue(ctx, name, strconv.Itoa(round)); err != nil {
			return err
		}
		before, err := b.writes.read(ctx)
		if err != nil {
			return err
		}
		run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, round)}}
		run.Spec = placementv1.UpdateRunSpec{PlacementName: name, StagedUpdateStrategyName: name, State: placementv1.UpdateRunStateRun}
		start := time.Now()
		begun = start
		if err := b.hub.Create(ctx, run); err != nil {
			return fmt.Errorf("create run %s: %w", run.Name, err)
		}
		if err := b.until(ctx, b.hub, run, func() bool { return meta.IsStatusConditionTrue(run.Status.Conditions, placementv1.ConditionSucceeded) }); err != nil {
			return fmt.Errorf("wait for run %s: %w", run.Name, err)
		}
		took := time.Since(start)
		if err := b.settle(ctx); err != nil {
			return err
		}
		after, err := b.writes.read(ctx)
		if err != nil {
			return err
		}
		if round > 0 {
			writes = append(writes, after.since(before))
			times, perCluster = append(times, took), append(perCluster, writes[len(writes)-1].total())
		}
	}
	n := float64(len(b.members))
	b.add(fmt.Sprintf("run over %d clusters, %d stages, 50 %%, no gates", len(b.members), stages), "≤ 3 s", "%.2f s", median(times).Seconds())
	b.add("run: hub writes per cluster updated", "≤ 6, then 4", "%.1f (rounds: %v)", float64(median(perCluster))/n, perCluster)
	events, err := b.writes.told(ctx, begun)
	if err != nil {
		return err
	}
	b.details = append(breakdown(writes), "", "events of the last round: "+events)
	return nil
}

// rollingUpdates times an edit on the hub until the last member has it.
func (b *bench) rollingUpdates(ctx context.Context) error {
	const name = "bench-rolling"
	if err := b.place(ctx, name, placementv1.RollingUpdateRolloutStrategyType); err != nil {
		return err
	}
	if err := b.everywhere(ctx, name, "0"); err != nil {
		return err
	}
	var times []time.Duration
	for round := range b.rounds {
		value := "round-" + strconv.Itoa(round)
		start := time.Now()
		if err := b.setValue(ctx, name, value); err != nil {
			return err
		}
		if err := b.everywhere(ctx, name, value); err != nil {
			return err
		}
		times = append(times, time.Since(start))
		if err := b.settle(ctx); err != nil {
			return err
		}
	}
	b.add(fmt.Sprintf("rolling update, budget 100 %%: edit to the last of %d", len(b.members)), "≤ 1 s", "%.2f s", median(times).Seconds())
	return nil
}

// drift times how long a change made in a member lasts.
func (b *bench) drift(ctx context.Context) error {
	const name = "bench-rolling"
	member := b.members[b.fleet.Names()[0]]
	want := "round-" + strconv.Itoa(b.rounds-1)
	var times []time.Duration
	for range b.rounds {
		cm := configMap(name, "drifted")
		start := time.Now()
		if err := member.Update(ctx, cm); err != nil {
			return fmt.Errorf("change the ConfigMap in a member: %w", err)
		}
		if err := b.until(ctx, member, cm, func() bool { return cm.Data["key"] == want }); err != nil {
			return fmt.Errorf("wait for the drift to be repaired: %w", err)
		}
		times = append(times, time.Since(start))
	}
	b.add("drift in a member repaired", "≤ 2 s", "%.3f s", median(times).Seconds())
	return nil
}

// memory reads the sizes of an agent with 50 pods and 20 placed objects, and of the hub with 20 placements.
func (b *bench) memory(ctx context.Context) error {
	first := b.fleet.Names()[0]
	member := b.members[first]
	if err := member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pods"}}); err != nil {
		return fmt.Errorf("create a namespace in %s: %w", first, err)
	}
	if err := member.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "pods", Name: "default"}}); err != nil {
		return fmt.Errorf("create a service account in %s: %w", first, err)
	}
	for i := range 50 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pods", Name: fmt.Sprintf("pod-%d", i)}}
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i:1"}}
		if err := member.Create(ctx, pod); err != nil {
			return fmt.Errorf("create pod %d in %s: %w", i, first, err)
		}
	}
	for i := range 18 { // with the two placements that there are already
		name := fmt.Sprintf("bench-memory-%d", i)
		if err := b.place(ctx, name, placementv1.RollingUpdateRolloutStrategyType); err != nil {
			return err
		}
		if err := b.everywhere(ctx, name, "0"); err != nil {
			return err
		}
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	for _, m := range []struct{ what, budget, process string }{
		{"agent: RSS with 50 pods, 40 placed objects", "≤ 45 MB", quickstart.AgentProcess + first},
		{fmt.Sprintf("hub: RSS with %d members, 20 placements", len(b.members)), "≤ 120 MB", quickstart.HubProcess},
	} {
		size, err := b.residentMB(m.process)
		if err != nil {
			return err
		}
		b.add(m.what, m.budget, "%.0f MB", size)
	}
	return nil
}

// idle counts the writes of a hub on which nothing changes.
func (b *bench) idle(ctx context.Context) error {
	before, err := b.writes.read(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.silence):
	}
	after, err := b.writes.read(ctx)
	if err != nil {
		return err
	}
	quiet := after.since(before)
	b.add(fmt.Sprintf("writes on the hub in %s without change, Leases aside, %d members", b.silence, len(b.members)), "the 2-minute heartbeats", "%d (%s)", quiet.total(), quiet)
	return nil
}

// place makes a namespace with a ConfigMap, and a placement of it, and waits until it is scheduled.
func (b *bench) place(ctx context.Context, name string, strategy placementv1.RolloutStrategyType) error {
	placement := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	placement.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: name}}
	placement.Spec.Strategy.Type = strategy
	if strategy == placementv1.RollingUpdateRolloutStrategyType {
		placement.Spec.Strategy.RollingUpdate = &placementv1.RollingUpdateConfig{MaxUnavailable: ptr.To(intstr.FromString("100%"))}
	}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, configMap(name, "0"), placement} {
		if err := b.hub.Create(ctx, object); err != nil {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	err := b.until(ctx, b.hub, placement, func() bool {
		return meta.IsStatusConditionTrue(placement.Status.Conditions, "ClusterResourcePlacementScheduled")
	})
	if err != nil {
		return fmt.Errorf("wait until placement %s is scheduled: %w", name, err)
	}
	return nil
}

// createStages divides the members into stages by a label.
func (b *bench) createStages(ctx context.Context, name string) error {
	strategy := &placementv1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := range stages {
		strategy.Spec.Stages = append(strategy.Spec.Stages, placementv1.StageConfig{
			Name:           fmt.Sprintf("stage%d", i),
			LabelSelector:  &metav1.LabelSelector{MatchLabels: map[string]string{"bench-stage": strconv.Itoa(i)}},
			MaxConcurrency: ptr.To(intstr.FromString("50%")),
		})
	}
	if err := b.hub.Create(ctx, strategy); err != nil {
		return fmt.Errorf("create the strategy: %w", err)
	}
	for i, member := range b.fleet.Names() {
		cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: member}}
		patch := fmt.Sprintf(`{"metadata":{"labels":{"bench-stage":"%d"}}}`, i%stages)
		if err := b.hub.Patch(ctx, cluster, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
			return fmt.Errorf("label %s: %w", member, err)
		}
	}
	return nil
}

func (b *bench) setValue(ctx context.Context, name, value string) error {
	if err := b.hub.Update(ctx, configMap(name, value)); err != nil {
		return fmt.Errorf("change the ConfigMap in %s: %w", name, err)
	}
	return nil
}

// everywhere waits until all members have the value.
func (b *bench) everywhere(ctx context.Context, name, value string) error {
	var wg sync.WaitGroup
	errs := make(chan error, len(b.members))
	for member, c := range b.members {
		wg.Go(func() {
			cm := configMap(name, "")
			if err := b.until(ctx, c, cm, func() bool { return cm.Data["key"] == value }); err != nil {
				errs <- fmt.Errorf("wait until %s has %s=%s: %w", member, name, value, err)
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// settle waits until the hub has not been written to for a second, so that one figure does not count another's writes.
func (b *bench) settle(ctx context.Context) error {
	before := -1
	for {
		counts, err := b.writes.read(ctx)
		if err != nil {
			return err
		}
		if counts.total() == before {
			return nil
		}
		before = counts.total()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (b *bench) until(ctx context.Context, c client.WithWatch, object client.Object, done func() bool) error {
	return framework.AwaitE(ctx, c, object, func(exists bool) bool { return exists && done() })
}

// residentMB reads a process's resident size.
func (b *bench) residentMB(process string) (float64, error) {
	pid, err := b.fleet.PID(process)
	if err != nil {
		return 0, err
	}
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the size of %s: %w", process, err)
	}
	for line := range strings.Lines(string(content)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				return 0, fmt.Errorf("understand the size of %s: %w", process, err)
			}
			return kb / 1024, nil
		}
	}
	return 0, fmt.Errorf("the system does not tell the size of %s", process)
}

func configMap(namespace, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"}, Data: map[string]string{"key": value}}
}

func median[T int | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
