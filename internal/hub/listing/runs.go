package listing

import (
	"context"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UpdateRuns returns the update runs of a scope that the options choose.
func UpdateRuns(ctx context.Context, r client.Reader, kinds *placement.Kinds, opts ...client.ListOption) ([]placementv1.UpdateRunObject, error) {
	return items[placementv1.UpdateRunObject](ctx, r, kinds.UpdateRun, kinds.NewUpdateRunList(), opts)
}

// ApprovalRequests returns the approval requests of a scope that the options choose.
func ApprovalRequests(ctx context.Context, r client.Reader, kinds *placement.Kinds, opts ...client.ListOption) ([]placementv1.ApprovalRequestObject, error) {
	return items[placementv1.ApprovalRequestObject](ctx, r, kinds.ApprovalRequest, kinds.NewApprovalRequestList(), opts)
}
