package apply

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// view is what others need to know of a Work.
type view struct {
	name string
	// placement, binding and index name what the Work was rendered for; parts is how many Works carry that snapshot.
	placement, binding, index string
	parts                     int
	// deleting tells that the Work is going; removal that the hub means that.
	deleting, removal bool
	// abandons tells that the hub means the Work to go and its objects to stay.
	abandons bool
	// reportsOnly tells that the Work writes nothing into the member, and so takes nothing over.
	reportsOnly bool
	// objects are what the Work lists.
	objects map[objectKey]bool
}

// wants tells whether a Work still claims an object. One that goes by accident does: the hub makes it again.
func (v *view) wants(key objectKey) bool {
	return v.objects[key] && (!v.deleting || !v.removal)
}

// works are the Works of the cluster at one moment, by name.
type works map[string]*view

// other returns a Work, other than the one of that name, which claims an object; nil where none does.
func (w works) other(name string, key objectKey) *view {
	var found *view
	for n, v := range w {
		if n != name && v.wants(key) && !v.reportsOnly && (found == nil || n < found.name) {
			found = v
		}
	}
	return found
}

// complete tells whether all Works that carry the snapshot of v are there.
func (w works) complete(v *view) bool {
	have := 0
	for _, o := range w {
		if o.binding == v.binding && o.index == v.index && !o.deleting {
			have++
		}
	}
	return have >= v.parts
}

// listing remembers which objects one generation of a Work has, so that no manifest is read twice for it.
type listing struct {
	generation int64
	objects    map[objectKey]bool
}

// readWorks reads the Works of the cluster from the cache.
func (a *Applier) readWorks(ctx context.Context) (works, error) {
	var list placementv1.WorkList
	if err := a.hub.List(ctx, &list, client.InNamespace(a.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Works: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	all := works{}
	listings := make(map[types.UID]*listing, len(list.Items))
	for i := range list.Items {
		work := &list.Items[i]
		known := a.listings[work.UID]
		if known == nil || known.generation != work.Generation {
			known = listingOf(work)
		}
		listings[work.UID] = known
		all[work.Name] = viewOf(work, known.objects)
	}
	a.listings = listings
	return all, nil
}

func listingOf(work *placementv1.Work) *listing {
	l := &listing{generation: work.Generation, objects: map[objectKey]bool{}}
	for i := range work.Spec.Workload.Manifests {
		if key, _, err := keyOf(work.Spec.Workload.Manifests[i].Raw); err == nil && key.name != "" {
			l.objects[key] = true
		}
	}
	return l
}

func viewOf(work *placementv1.Work, objects map[objectKey]bool) *view {
	// A Work that was made without a count stands for itself.
	parts, err := strconv.Atoi(work.Annotations[placementv1.AnnotationWorkCount])
	if err != nil || parts < 1 {
		parts = 1
	}
	deleting, confirmed := !work.DeletionTimestamp.IsZero(), work.Annotations[placementv1.AnnotationRemovalConfirmed]
	return &view{
		name: work.Name, placement: cmp.Or(placement.Owner(work.Labels), "a Work of no placement"),
		binding: work.Labels[placementv1.LabelParentBinding], index: work.Labels[placementv1.LabelParentSnapshotIndex], parts: parts,
		deleting: deleting, removal: confirmed == "true" || confirmed == placementv1.RemovalAbandons,
		abandons:    deleting && confirmed == placementv1.RemovalAbandons,
		reportsOnly: work.Spec.ApplyStrategy.ReportsOnly(), objects: objects,
	}
}
