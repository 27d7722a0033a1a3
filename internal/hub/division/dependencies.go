package division

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/dependencies"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dependencies reads live what the object refers to, where the policy has that go along. What does not exist is noted, and the object
// goes without: the pods wait for it in the members, as they would in any cluster.
func (c *Controller) dependencies(ctx context.Context, p *pass) ([]snapshot.Object, error) {
	if !p.spec().PropagateDeps {
		c.needs.set(p.key(), nil)
		return nil, nil
	}
	references, err := dependencies.Of(p.object)
	if err != nil {
		return nil, err
	}
	c.needs.set(p.key(), references) // before they are read, so that a change in between is not missed
	var contents []snapshot.Object
	var missing []string
	for _, r := range references {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(r.Kind)
		err := c.APIReader.Get(ctx, client.ObjectKey{Namespace: p.object.GetNamespace(), Name: r.Name}, o)
		if apierrors.IsNotFound(err) || err == nil && !o.GetDeletionTimestamp().IsZero() {
			if !r.Optional {
				missing = append(missing, r.String())
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s, which %s %s needs: %w", r, p.object.GetKind(), p.object.GetName(), err)
		}
		if kind, _, _ := unstructured.NestedString(o.Object, "type"); kind == string(corev1.SecretTypeServiceAccountToken) {
			continue // each cluster makes its own
		}
		placement.Sanitize(o)
		content, err := snapshot.NewObject(o)
		if err != nil {
			return nil, fmt.Errorf("make a revision of %s: %w", r, err)
		}
		contents = append(contents, content)
	}
	if len(missing) > 0 {
		p.notes = append(p.notes, "it refers to what the hub does not have: "+strings.Join(missing, ", "))
	}
	return contents, nil
}

// needs remembers which objects are referred to by which others, so that a change of the one has the others looked at. Its zero
// value is ready for use.
type needs struct {
	mu   sync.Mutex
	of   map[types.NamespacedName][]dependencies.Reference
	used map[need]map[types.NamespacedName]bool // what is referred to → the internal placements that do
}

type need struct {
	kind            schema.GroupKind
	namespace, name string
}

func (n *needs) set(key types.NamespacedName, references []dependencies.Reference) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.Equal(n.of[key], references) {
		return
	}
	if n.of == nil {
		n.of, n.used = map[types.NamespacedName][]dependencies.Reference{}, map[need]map[types.NamespacedName]bool{}
	}
	for _, r := range n.of[key] {
		k := need{kind: r.Kind.GroupKind(), namespace: key.Namespace, name: r.Name}
		delete(n.used[k], key)
		if len(n.used[k]) == 0 {
			delete(n.used, k)
		}
	}
	delete(n.of, key)
	for _, r := range references {
		k := need{kind: r.Kind.GroupKind(), namespace: key.Namespace, name: r.Name}
		if n.used[k] == nil {
			n.used[k] = map[types.NamespacedName]bool{}
		}
		n.used[k][key] = true
		n.of[key] = references
	}
}

// by returns the internal placements of the objects that refer to one.
func (n *needs) by(kind schema.GroupKind, namespace, name string) []types.NamespacedName {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []types.NamespacedName
	for key := range n.used[need{kind: kind, namespace: namespace, name: name}] {
		all = append(all, key)
	}
	return all
}
