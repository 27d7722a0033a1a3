package snapshots_test

import (
	"context"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// vanished selects the namespace demo on a hub that serves none of the kinds in it.
type vanished struct{}

func (vanished) Select(context.Context, placementv1.PlacementObject) (*selection.Selection, error) {
	return &selection.Selection{Roots: map[schema.GroupKind][]string{placement.NamespaceKind: {"demo"}}, Namespaces: []string{"demo"}}, nil
}
