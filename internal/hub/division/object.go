package division

import (
	"context"
	"fmt"
	"sync"

	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// read reads the object live; found is false where it is not the one that the internal placement was made for: what follows from
// that is the concern of who keeps the claims.
func (c *Controller) read(ctx context.Context, p *pass) (found bool, err error) {
	r := &p.spec().Resource
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.FromAPIVersionAndKind(r.APIVersion, r.Kind))
	err = c.APIReader.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, o)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s %s, which is to be placed: %w", r.Kind, r.Name, err)
	}
	if owners := p.placement.GetOwnerReferences(); len(owners) == 0 || owners[0].UID != o.GetUID() || !o.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	p.object = o
	replicas, has, err := placement.Replicas(o)
	if err != nil {
		return false, err
	}
	if has {
		p.replicas = &replicas
	}
	return true, nil
}

// keep sees to it that the newest revision holds what the object says now. How many replicas it wants is no part of that: a share
// of them is on each binding.
func (c *Controller) keep(ctx context.Context, p *pass) error {
	o := p.object.DeepCopy()
	placement.Sanitize(o)
	if err := placement.SetReplicas(o, nil); err != nil {
		return err
	}
	content, err := snapshot.NewObject(o)
	if err != nil {
		return fmt.Errorf("make a revision of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	if size := len(content.Content); size > snapshot.MaxObject {
		return p.refuse(c.Clock.Now(), "%s %s has %d KiB, more than the %d KiB that one object can have to be placed; make it smaller",
			o.GetKind(), o.GetName(), size/1024, snapshot.MaxObject/1024)
	}
	objects, err := c.dependencies(ctx, p)
	if err != nil {
		return err
	}
	objects = append(objects, content)
	snapshot.Sort(objects)
	hash := snapshot.Hash(objects)
	if c.kept.is(p.placement.GetUID(), hash) {
		return nil
	}
	if _, err := c.Snapshots.Keep(ctx, p.placement, objects); err != nil {
		return fmt.Errorf("keep a revision of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	c.kept.set(p.placement.GetUID(), hash)
	return nil
}

// kept remembers of what a revision was kept last, so that what changes on an object beside its content, its status above all, costs
// no look at its revisions. Its zero value is ready for use.
type kept struct {
	mu     sync.Mutex
	hashes map[types.UID]string // by the internal placement
}

func (k *kept) is(uid types.UID, hash string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.hashes[uid] == hash
}

func (k *kept) set(uid types.UID, hash string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hashes == nil {
		k.hashes = map[types.UID]string{}
	}
	k.hashes[uid] = hash
}

// forget drops what is known of an internal placement that is gone, or of which revisions were changed by others.
func (k *kept) forget(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.hashes, uid)
}
