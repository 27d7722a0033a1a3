package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	bulkObjects = 300
	// bulkLargest is the size of one of them. A ConfigMap can have 1 MiB.
	bulkLargest = 900_000
	bulkMembers = 3
)

// bulk times a placement of many objects, one of them large, until it is available in three members.
func (b *bench) bulk(ctx context.Context) error {
	var times []time.Duration
	for round := range b.rounds {
		name := "bench-bulk-" + strconv.Itoa(round)
		if err := b.createBulk(ctx, name); err != nil {
			return err
		}
		placement := &placementv1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
		placement.Spec.ResourceSelectors = []placementv1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: name}}
		placement.Spec.Policy = &placementv1.PlacementPolicy{
			PlacementType: placementv1.PickFixedPlacementType, ClusterNames: b.fleet.Names()[:min(bulkMembers, len(b.fleet.Names()))],
		}
		start := time.Now()
		if err := b.hub.Create(ctx, placement); err != nil {
			return fmt.Errorf("create placement %s: %w", name, err)
		}
		err := b.until(ctx, b.hub, placement, func() bool {
			return meta.IsStatusConditionTrue(placement.Status.Conditions, "ClusterResourcePlacementAvailable")
		})
		if err != nil {
			return fmt.Errorf("wait until placement %s is available: %w", name, err)
		}
		times = append(times, time.Since(start))
		if err := b.hub.Delete(ctx, placement); err != nil {
			return fmt.Errorf("delete placement %s: %w", name, err)
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
	}
	b.add(fmt.Sprintf("%d objects, one of %d KB, to %d members: available", bulkObjects, bulkLargest/1000, bulkMembers), "≤ 10 s", "%.2f s", median(times).Seconds())
	return nil
}

// createBulk makes a namespace with all the objects on the hub; the namespace is one of them.
func (b *bench) createBulk(ctx context.Context, name string) error {
	if err := b.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	for i := range bulkObjects - 1 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: fmt.Sprintf("settings-%03d", i)}, Data: map[string]string{"key": strconv.Itoa(i)}}
		if i == 0 {
			cm.Data["key"] = strings.Repeat("x", bulkLargest)
		}
		if err := b.hub.Create(ctx, cm); err != nil {
			return fmt.Errorf("create ConfigMap %s/%s: %w", name, cm.Name, err)
		}
	}
	return nil
}
