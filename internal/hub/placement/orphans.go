package placement

import (
	"context"
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	model "github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// bindOrphans finds Works of a deleted placement that have no binding, since somebody deleted that by accident and the scheduler
// had not made it again, and makes one for them: deleted with the others, it takes them along. Without it what was placed would
// stay in the cluster for ever, and nobody would know.
func (c *Controller) bindOrphans(ctx context.Context, key model.Key, p placementv1.PlacementObject) ([]placementv1.BindingObject, error) {
	works := &metav1.PartialObjectMetadataList{}
	works.SetGroupVersionKind(placementv1.GroupVersion.WithKind("WorkList"))
	if err := c.APIReader.List(ctx, works, client.MatchingLabels{placementv1.LabelParentPlacement: key.Name}); err != nil {
		return nil, fmt.Errorf("list the Works of %s %s: %w", c.Kinds.Placement, key, err)
	}
	made := map[string]placementv1.BindingObject{}
	for i := range works.Items {
		w := &works.Items[i]
		cluster, isMember := strings.CutPrefix(w.Namespace, placementv1.MemberNamespacePrefix)
		name := w.Labels[placementv1.LabelParentBinding]
		if !isMember || name == "" || made[name] != nil || w.Annotations[placementv1.AnnotationPlacementUID] != string(p.GetUID()) {
			continue
		}
		b := c.Kinds.NewBinding()
		b.SetNamespace(key.Namespace)
		b.SetName(name)
		b.SetLabels(map[string]string{placementv1.LabelParentPlacement: key.Name})
		b.SetAnnotations(map[string]string{placementv1.AnnotationPlacementUID: string(p.GetUID())})
		b.SetFinalizers([]string{placementv1.FinalizerWorkCleanup})
		*b.BindingSpec() = placementv1.ResourceBindingSpec{State: placementv1.BindingStateUnscheduled, TargetCluster: cluster}
		if err := c.Client.Create(ctx, b); err != nil {
			return nil, fmt.Errorf("make %s %s again, for Work %s/%s that has none: %w", c.Kinds.Binding, name, w.Namespace, w.Name, err)
		}
		log.FromContext(ctx).Info("A Work had no binding when its placement was deleted; one is made, and removed with it", "work", client.ObjectKeyFromObject(w), "binding", name)
		made[name] = b
	}
	var bindings []placementv1.BindingObject
	for _, b := range made {
		bindings = append(bindings, b)
	}
	return bindings, nil
}
