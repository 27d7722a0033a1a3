package apply

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	// releases are, by Deployment, the names of the Rollouts that the Work lists, which are not disabled, and release it.
	releases map[objectKey][]string
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
	releases   map[objectKey][]string
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
		all[work.Name] = viewOf(work, known)
	}
	a.listings = listings
	return all, nil
}

func listingOf(work *placementv1.Work) *listing {
	l := &listing{generation: work.Generation, objects: map[objectKey]bool{}, releases: map[objectKey][]string{}}
	for i := range work.Spec.Workload.Manifests {
		if key, _, err := keyOf(work.Spec.Workload.Manifests[i].Raw); err == nil && key.name != "" {
			l.objects[key] = true
			l.noteRollout(key, work.Spec.Workload.Manifests[i].Raw)
		}
	}
	return l
}

// noteRollout takes note of which Deployment a Rollout releases.
func (l *listing) noteRollout(key objectKey, raw []byte) {
	if !kruise.IsRollout(key.GroupKind) {
		return
	}
	rollout := &unstructured.Unstructured{}
	if rollout.UnmarshalJSON(raw) != nil || kruise.Disabled(rollout) {
		return
	}
	kind, name := kruise.Workload(rollout)
	workload := objectKey{GroupKind: kind, namespace: key.namespace, name: name}
	l.releases[workload] = append(l.releases[workload], key.name)
}

// rolloutsOf names the Rollouts that Works of the cluster list and that release a Deployment. One that is compared alone, or that goes
// on the hub's wish, releases nothing.
func (w works) rolloutsOf(key objectKey) []string {
	names := sets.New[string]()
	for _, v := range w {
		if !v.reportsOnly && (!v.deleting || !v.removal) {
			names.Insert(v.releases[key]...)
		}
	}
	return sets.List(names)
}

func viewOf(work *placementv1.Work, listed *listing) *view {
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
		reportsOnly: work.Spec.ApplyStrategy.ReportsOnly(), objects: listed.objects, releases: listed.releases,
	}
}
