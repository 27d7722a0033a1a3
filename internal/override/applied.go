package override

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Applied are the overrides that a cluster gets, and all that it depends on there what they do.
type Applied struct {
	placementv1.AppliedOverrides
	// Labels are those labels of the cluster that the overrides ask for.
	Labels map[string]string `json:"overrideLabels,omitempty"`
}

// AppliedTo reads what a binding was given. It belongs to the binding.
func AppliedTo(b placementv1.BindingObject) Applied {
	return Applied{AppliedOverrides: b.BindingSpec().AppliedOverrides, Labels: b.BindingSpec().OverrideLabels}
}

// Equal tells whether two are the same. What is not there is the same as what is empty.
func (a Applied) Equal(b Applied) bool {
	return maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.ClusterResourceOverrideSnapshots, b.ClusterResourceOverrideSnapshots) &&
		slices.Equal(a.ResourceOverrideSnapshots, b.ResourceOverrideSnapshots)
}

// Empty tells whether there is nothing to override.
func (a Applied) Empty() bool {
	return len(a.ClusterResourceOverrideSnapshots)+len(a.ResourceOverrideSnapshots) == 0
}

// Give writes it on a binding, in memory. All of it is in the spec, so that whoever counts generations counts a change of the
// labels too.
func (a Applied) Give(b placementv1.BindingObject) {
	b.BindingSpec().AppliedOverrides = *a.DeepCopy()
	b.BindingSpec().OverrideLabels = nil
	if len(a.Labels) > 0 {
		b.BindingSpec().OverrideLabels = maps.Clone(a.Labels)
	}
}

// Cluster is what an override knows of a cluster.
type Cluster struct {
	// Name is the cluster's name.
	Name string
	// Labels are those labels of the cluster that its overrides ask for.
	Labels map[string]string
}

// Cluster returns the cluster of that name, as the overrides see it.
func (a Applied) Cluster(name string) Cluster { return Cluster{Name: name, Labels: a.Labels} }

// askedOf returns those of a cluster's labels that are asked for; nil where there is none.
func askedOf(clusterLabels map[string]string, asked map[string]bool) map[string]string {
	var known map[string]string
	for key := range asked {
		if value, ok := clusterLabels[key]; ok {
			if known == nil {
				known = map[string]string{}
			}
			known[key] = value
		}
	}
	return known
}

// Known are snapshots of overrides that can be looked up.
type Known struct {
	snapshots map[placement.Key]placementv1.OverrideSnapshotObject // nil for one that is gone
}

// Know makes snapshots known, and of others that they are gone.
func Know(snapshots []placementv1.OverrideSnapshotObject, gone ...placement.Key) Known {
	k := Known{snapshots: make(map[placement.Key]placementv1.OverrideSnapshotObject, len(snapshots)+len(gone))}
	for _, key := range gone {
		k.snapshots[key] = nil
	}
	for _, s := range snapshots {
		k.snapshots[placement.Key{Namespace: s.GetNamespace(), Name: s.GetName()}] = s
	}
	return k
}

// With completes a list of overrides for a cluster with some labels. A snapshot that is gone asks for no label. Of one that is
// not known nobody can tell for which it asks: then unknown names it, and nothing may be done with what is returned.
func (k Known) With(list placementv1.AppliedOverrides, clusterLabels map[string]string) (a Applied, unknown string) {
	asked := map[string]bool{}
	list.Each(func(namespace, name string) {
		switch s, known := k.snapshots[placement.Key{Namespace: namespace, Name: name}]; {
		case !known:
			unknown = strings.TrimPrefix(namespace+"/"+name, "/")
		case s != nil && s.OverridePolicy() != nil:
			askedBy(s.OverridePolicy(), clusterLabels, asked)
		}
	})
	return Applied{AppliedOverrides: list, Labels: askedOf(clusterLabels, asked)}, unknown
}

// ParentOf names the override that a snapshot is a revision of.
func ParentOf(s metav1.Object) placement.Key {
	return placement.Key{Namespace: s.GetNamespace(), Name: s.GetLabels()[placementv1.LabelParentOverride]}
}

// Index is a snapshot's index; -1 where it has none.
func Index(s metav1.Object) int {
	_, index := SplitName(s.GetName())
	return index
}

// SnapshotName names the snapshot of an override with an index.
func SnapshotName(name string, index int) string { return fmt.Sprintf("%s-%d", name, index) }

// SplitName reads an override's name and the index back from the name of its snapshot; the index is -1 where that is none.
func SplitName(snapshot string) (name string, index int) {
	dash := strings.LastIndexByte(snapshot, '-')
	if dash < 0 {
		return "", -1
	}
	index, err := strconv.Atoi(snapshot[dash+1:])
	if err != nil || index < 0 || SnapshotName(snapshot[:dash], index) != snapshot {
		return "", -1
	}
	return snapshot[:dash], index
}
