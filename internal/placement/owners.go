package placement

import (
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsAppliedWork tells whether an owner reference in a member is to an AppliedWork, in whatever version: both its group and
// its kind are looked at.
func IsAppliedWork(owner metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == placementv1.GroupVersion.Group && owner.Kind == "AppliedWork"
}

// StatusWriter is who else than the fleet writes the status of an object on the hub, such as a controller of a hub that runs workloads
// itself; empty where nobody does.
func StatusWriter(o metav1.Object) string {
	for _, entry := range o.GetManagedFields() {
		if entry.Subresource == "status" && entry.Manager != placementv1.StatusFieldManager {
			return entry.Manager
		}
	}
	return ""
}
