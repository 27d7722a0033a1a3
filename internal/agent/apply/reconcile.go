package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// maxBackoff is how long a failed apply waits at the most before it is tried again.
	maxBackoff = 15 * time.Second
	// parallel is how many objects of one wave are applied at once.
	parallel = 8
)

// onWork looks at a Work that changed, and at those which wait for it: one that gives up an object waits until it has
// seen all that may take it over.
func (a *Applier) onWork() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		requests := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
		a.mu.Lock()
		defer a.mu.Unlock()
		for name, m := range a.memory {
			if name != o.GetName() && len(m.unwanted) > 0 {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: a.Namespace, Name: name}})
			}
		}
		return requests
	})
}

// Reconcile brings the member to what one Work says.
func (a *Applier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.active {
		return ctrl.Result{}, nil
	}
	work := &placementv1.Work{}
	if err := a.hub.Get(ctx, request.NamespacedName, work); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("read Work %s: %w", request.Name, err)
		}
		// Absence is not deletion: a hub that was restored without this Work must not cost the member anything.
		delete(a.memory, request.Name)
		a.watches.set(request.Name, nil)
		return ctrl.Result{}, a.letGoIfDeleted(ctx, request.Name)
	}
	if written := a.remember(work.Name).written; written != nil && written.UID == work.UID && newer(written, work) {
		return ctrl.Result{}, nil
	}
	if !work.DeletionTimestamp.IsZero() {
		return a.remove(ctx, work)
	}
	return a.apply(ctx, work)
}

// pass is one pass over one Work.
type pass struct {
	*Applier
	work      *placementv1.Work
	memory    *workMemory
	owner     *placementv1.AppliedWork
	manifests []*manifest
	// released are objects that were left in the member on purpose, each with the reason.
	released []string
	// removing are objects that are being deleted.
	removing []string
	// forgotten tells that a record was dropped and has to be written down.
	forgotten bool
	// again is when to look again; 0 means when something changes.
	again time.Duration
}

func (p *pass) lookAgain(after time.Duration) {
	if p.again == 0 || after < p.again {
		p.again = after
	}
}

func (a *Applier) apply(ctx context.Context, work *placementv1.Work) (ctrl.Result, error) {
	p := &pass{Applier: a, work: work, memory: a.remember(work.Name)}
	if p.memory.generation != work.Generation {
		p.memory.generation, p.memory.failures = work.Generation, 0
	}
	owner, err := p.ensureAppliedWork(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if owner == nil {
		return ctrl.Result{RequeueAfter: p.again}, nil
	}
	p.owner = owner
	p.manifests = decode(work, a.mapper)
	p.watch()
	if err := p.record(ctx); err != nil {
		return ctrl.Result{}, err
	}
	failed := p.applyWaves(ctx)
	// What cannot be given up yet must not keep the hub from hearing what was applied.
	pruneErr := p.prune(ctx)
	if err := errors.Join(p.record(ctx), p.report(ctx), pruneErr); err != nil {
		return ctrl.Result{}, err
	}
	if failed {
		p.memory.failures++
		p.lookAgain(backoff(p.memory.failures))
	} else {
		p.memory.failures = 0
	}
	return ctrl.Result{RequeueAfter: p.again}, nil
}

// backoff is how long to wait after so many failures: a second, then twice as long each time, up to maxBackoff.
func backoff(failures int) time.Duration {
	wait := time.Second
	for range failures - 1 {
		if wait *= 2; wait >= maxBackoff {
			return maxBackoff
		}
	}
	return wait
}

// watch watches the kinds of all that the Work has, what it gives up included.
func (p *pass) watch() {
	resources := map[objectKey]schema.GroupVersionResource{}
	for i := range p.owner.Status.AppliedResources {
		r := &p.owner.Status.AppliedResources[i]
		if gvr, known := resourceOf(&r.WorkResourceIdentifier); known {
			resources[keyOfID(&r.WorkResourceIdentifier)] = gvr
		}
	}
	for _, m := range p.manifests {
		if m.reason == "" {
			resources[m.key] = m.gvr
		}
	}
	p.watches.set(p.work.Name, resources)
}

// applyWaves applies the manifests wave by wave and tells whether one failed. A failure does not hold back later waves.
func (p *pass) applyWaves(ctx context.Context) (failed bool) {
	byWave := map[int][]*manifest{}
	for _, m := range p.manifests {
		if m.reason == "" {
			wave := waveOf(m.gvr.GroupResource())
			byWave[wave] = append(byWave[wave], m)
		}
	}
	for wave := 0; wave <= lastWave; wave++ {
		p.applyWave(ctx, byWave[wave])
	}
	for _, m := range p.manifests {
		if m.reason == "" {
			continue
		}
		failed = true
		log.FromContext(ctx).Info("Cannot apply an object", "work", p.work.Name, "object", m.key.String(), "reason", m.reason)
	}
	return failed
}

func (p *pass) applyWave(ctx context.Context, wave []*manifest) {
	states := make([]*appliedState, len(wave))
	limit := make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i, m := range wave {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			states[i] = p.applyObject(ctx, m)
		})
	}
	wg.Wait()
	for i, m := range wave {
		if states[i] == nil {
			delete(p.memory.applied, m.key)
			continue
		}
		p.memory.applied[m.key] = *states[i]
	}
}
