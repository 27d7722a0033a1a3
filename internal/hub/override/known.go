package override

import (
	"context"
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Known returns the snapshots that the plans of runs name. A plan is made from live reads, so that the cache may not have come to
// show all of them yet: such are read live, and only one that is not there either counts as gone.
func Known(ctx context.Context, cached, live client.Reader, runs []placementv1.UpdateRunObject) (override.Known, error) {
	var known []placementv1.OverrideSnapshotObject
	var gone []placement.Key
	for key := range planned(runs) {
		var s placementv1.OverrideSnapshotObject = &placementv1.ClusterResourceOverrideSnapshot{}
		if key.Namespace != "" {
			s = &placementv1.ResourceOverrideSnapshot{}
		}
		err := cached.Get(ctx, key, s)
		if apierrors.IsNotFound(err) {
			err = live.Get(ctx, key, s)
		}
		switch {
		case err == nil:
			known = append(known, s)
		case apierrors.IsNotFound(err):
			gone = append(gone, key)
		default:
			return override.Known{}, fmt.Errorf("read override snapshot %s: %w", key, err)
		}
	}
	return override.Know(known, gone...), nil
}

// planned are the snapshots that the plans of runs name.
func planned(runs []placementv1.UpdateRunObject) sets.Set[placement.Key] {
	names := sets.New[placement.Key]()
	for _, run := range runs {
		for i := range run.UpdateRunStatus().StagesStatus {
			for j := range run.UpdateRunStatus().StagesStatus[i].Clusters {
				run.UpdateRunStatus().StagesStatus[i].Clusters[j].Each(func(namespace, name string) {
					names.Insert(placement.Key{Namespace: namespace, Name: name})
				})
			}
		}
	}
	return names
}
