// Package override says which overrides a cluster gets, and what they make of an object there. It does no I/O.
package override

import (
	"cmp"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Latest returns the newest revision of each override that is still wanted, in the order in which they are applied. An
// override that was deleted has none.
func Latest(snapshots []placementv1.OverrideSnapshotObject) []placementv1.OverrideSnapshotObject {
	newest := map[placement.Key]placementv1.OverrideSnapshotObject{}
	for _, s := range snapshots {
		if s.GetLabels()[placementv1.LabelIsLatestSnapshot] != "true" || !s.GetDeletionTimestamp().IsZero() {
			continue
		}
		key := ParentOf(s)
		if known := newest[key]; known == nil || Index(s) > Index(known) {
			newest[key] = s
		}
	}
	latest := make([]placementv1.OverrideSnapshotObject, 0, len(newest))
	for _, s := range newest {
		latest = append(latest, s)
	}
	slices.SortFunc(latest, func(a, b placementv1.OverrideSnapshotObject) int {
		x, y := ParentOf(a), ParentOf(b)
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return latest
}

// IsFor tells whether a snapshot's override is for a placement.
func IsFor(s placementv1.OverrideSnapshotObject, key placement.Key) bool {
	ref := s.OverridePlacement()
	switch {
	case ref == nil:
		return true
	case ref.Name != key.Name:
		return false
	case ref.Scope == placementv1.NamespaceScoped:
		return key.Namespace != "" && key.Namespace == s.GetNamespace()
	default:
		return key.Namespace == ""
	}
}

// Selects tells whether a snapshot's override is about an object.
func Selects(s placementv1.OverrideSnapshotObject, id placementv1.ResourceIdentifier) bool {
	return slices.ContainsFunc(s.OverrideSelectors(), func(sel placementv1.ResourceOverrideSelector) bool {
		same := sel.Group == id.Group && sel.Version == id.Version && sel.Kind == id.Kind && sel.Name == id.Name
		if s.GetNamespace() != "" {
			return same && id.Namespace == s.GetNamespace()
		}
		isNamespace := schema.GroupKind{Group: sel.Group, Kind: sel.Kind} == placement.NamespaceKind
		return (same && id.Namespace == "") || (isNamespace && id.Namespace != "" && id.Namespace == sel.Name)
	})
}

// Matching are the revisions that matter to one placement with what it selects, in the order in which they are applied.
type Matching struct {
	snapshots []placementv1.OverrideSnapshotObject
}

// Match finds them among the latest revisions of all overrides.
func Match(latest []placementv1.OverrideSnapshotObject, key placement.Key, objects []placementv1.ResourceIdentifier) Matching {
	var m Matching
	for _, s := range latest {
		if IsFor(s, key) && slices.ContainsFunc(objects, func(id placementv1.ResourceIdentifier) bool { return Selects(s, id) }) {
			m.snapshots = append(m.snapshots, s)
		}
	}
	return m
}

// For returns what of it a cluster with some labels gets.
func (m Matching) For(clusterLabels map[string]string) Applied {
	var a Applied
	asked := map[string]bool{}
	for _, s := range m.snapshots {
		if s.OverridePolicy() == nil {
			continue
		}
		applies := false
		for i := range s.OverridePolicy().OverrideRules {
			applies = applies || covers(&s.OverridePolicy().OverrideRules[i], clusterLabels)
		}
		if !applies {
			continue
		}
		if s.GetNamespace() == "" {
			a.ClusterResourceOverrideSnapshots = append(a.ClusterResourceOverrideSnapshots, s.GetName())
		} else {
			a.ResourceOverrideSnapshots = append(a.ResourceOverrideSnapshots, placementv1.NamespacedName{Namespace: s.GetNamespace(), Name: s.GetName()})
		}
		askedBy(s.OverridePolicy(), clusterLabels, asked)
	}
	a.Labels = askedOf(clusterLabels, asked)
	return a
}

// covers tells whether a rule is for a cluster with some labels.
func covers(rule *placementv1.OverrideRule, clusterLabels map[string]string) bool {
	if rule.ClusterSelector == nil {
		return false
	}
	terms := rule.ClusterSelector.ClusterSelectorTerms
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term placementv1.OverrideClusterSelectorTerm) bool {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		return err == nil && selector.Matches(labels.Set(clusterLabels)) // the API takes no selector that cannot be read
	})
}

// askedBy adds the keys of the labels on which it depends what an override does in a cluster.
func askedBy(policy *placementv1.OverridePolicy, clusterLabels map[string]string, asked map[string]bool) {
	for i := range policy.OverrideRules {
		rule := &policy.OverrideRules[i]
		if rule.ClusterSelector != nil {
			for _, term := range rule.ClusterSelector.ClusterSelectorTerms {
				askedBySelector(term.LabelSelector, asked)
			}
		}
		if !covers(rule, clusterLabels) {
			continue
		}
		for j := range rule.JSONPatchOverrides {
			p := &rule.JSONPatchOverrides[j]
			askedByText(p.Path, asked)
			if p.Value != nil {
				askedByText(string(p.Value.Raw), asked)
			}
		}
	}
}

func askedBySelector(selector *metav1.LabelSelector, asked map[string]bool) {
	if selector == nil {
		return
	}
	for key := range selector.MatchLabels {
		asked[key] = true
	}
	for i := range selector.MatchExpressions {
		asked[selector.MatchExpressions[i].Key] = true
	}
}

func askedByText(text string, asked map[string]bool) {
	for _, found := range variable.FindAllStringSubmatch(text, -1) {
		if found[0] != placementv1.OverrideClusterNameVariable {
			asked[found[1]] = true
		}
	}
}

// ByCluster tells which overrides the cluster of a binding is to get.
type ByCluster func(placementv1.BindingObject) Applied

// ByCluster tells it of clusters with these labels, by name. Of a cluster that is not among them nothing is known: it is to
// keep what it has.
func (m Matching) ByCluster(clusterLabels map[string]map[string]string) ByCluster {
	return func(b placementv1.BindingObject) Applied {
		if m.Empty() {
			return Applied{}
		}
		if l, known := clusterLabels[b.BindingSpec().TargetCluster]; known {
			return m.For(l)
		}
		return AppliedTo(b)
	}
}

// Empty tells whether there are none.
func (m Matching) Empty() bool { return len(m.snapshots) == 0 }
