// Package enqueue maps changed objects to the requests of those who care.
package enqueue

import (
	"context"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Placement maps a snapshot or a binding to the placement that its label names. A binding whose label somebody took off, or
// changed, is the concern of the placement that it was made for.
func Placement() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
		names := []string{o.GetLabels()[placementv1.LabelParentPlacement]}
		if b, ok := o.(placementv1.BindingObject); ok {
			names = append(names, placement.PolicySnapshotPlacement(b.BindingSpec().SchedulingPolicySnapshotName))
		}
		var requests []ctrl.Request
		for i, name := range names {
			if name != "" && !slices.Contains(names[:i], name) {
				requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}})
			}
		}
		return requests
	})
}
