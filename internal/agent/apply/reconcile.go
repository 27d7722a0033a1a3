package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// maxBackoff is how long a failed apply waits at the most before it is tried again.
	maxBackoff = 15 * time.Second
	// parallel is how many objects of one wave are applied at once.
	parallel = 8
)

// onWork looks at a Work that changed, and at those which wait for another: one that gives up an object waits until it has
// seen all that may take it over, and one that may not have an object until another gives it up.
func (a *Applier) onWork() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		a.wake(o.GetName(), func(w waits) bool { return w.works })
		return []reconcile.Request{a.request(o.GetName())}
	})
}

// asked passes over changes of a Work that are our own: those of its status. A status that is none of ours, after the hub was
// restored from a backup for one, is looked at.
func (a *Applier) asked() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) || !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
			a.isStrange(e.ObjectOld, e.ObjectNew)
	}}
}

// Reconcile brings the member to what one Work says.
func (a *Applier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	a.gate.RLock()
	defer a.gate.RUnlock()
	if !a.active {
		a.sleep(request.Name)
		return ctrl.Result{}, nil
	}
	work := &placementv1.Work{}
	if err := a.hub.Get(ctx, request.NamespacedName, work, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("read Work %s: %w", request.Name, err)
		}
		return ctrl.Result{}, a.vanished(ctx, request.Name)
	}
	a.orphan(request.Name, false)
	p, err := a.begin(ctx, work)
	if err != nil {
		return ctrl.Result{}, err
	}
	if work.DeletionTimestamp.IsZero() {
		err = p.apply(ctx)
	} else {
		err = p.remove(ctx)
	}
	if apierrors.IsConflict(err) {
		p.lookAgain(conflictPause)
		err = nil
	}
	if err != nil {
		return ctrl.Result{}, err // which comes again by itself, after a while
	}
	return ctrl.Result{RequeueAfter: p.again}, nil
}

// conflictPause is how long to wait after a write that lost against another one.
const conflictPause = 100 * time.Millisecond

// vanished is for a Work that is not there. Absence is not deletion: a hub that was restored without the Work must not cost
// the member anything. What is being deleted by somebody else is let go, so that nothing goes with it.
func (a *Applier) vanished(ctx context.Context, name string) error {
	a.forget(name)
	applied, err := a.getAppliedWork(ctx, name)
	if err != nil || applied == nil {
		a.orphan(name, false)
		return err
	}
	if !applied.DeletionTimestamp.IsZero() { // one from when the cluster had another name, too: there is nobody else to do it
		a.orphan(name, false)
		_, err = a.letGo(ctx, applied)
		return err
	}
	if applied.Spec.WorkNamespace != a.Namespace {
		a.orphan(name, false)
		return nil
	}
	if a.orphan(name, true) {
		log.FromContext(ctx).Info("The hub has no such Work, but the member has what it placed: that stays as it is. Delete the AppliedWork to have the fleet let go of it",
			"appliedWork", name, "objects", len(applied.Status.AppliedResources))
	}
	return nil
}

// apply brings the member to what the Work says, and the Work's status to what the member says.
func (p *pass) apply(ctx context.Context) error {
	if p.strategy.ReportsOnly() {
		return p.reportDiffs(ctx)
	}
	if err := p.ensureAppliedWork(ctx); err != nil || p.owner == nil {
		p.waits.kinds = true
		return p.blocked(ctx, err)
	}
	p.manifests = decode(p.work)
	p.resolve(ctx)
	p.watch()
	p.followRollouts(ctx)
	if err := p.record(ctx); err != nil {
		return p.blocked(ctx, err)
	}
	failed := p.applyWaves(ctx)
	p.prune(ctx)
	if err := p.record(ctx); err != nil {
		return p.blocked(ctx, err)
	}
	p.end(failed || len(p.refused) > 0)
	return p.report(ctx)
}

// blocked ends a pass that cannot go on before its AppliedWork is written, and tells the hub why, unless that is a matter of
// a moment.
func (p *pass) blocked(ctx context.Context, err error) error {
	p.end(true)
	if err == nil || unreachable(err) || apierrors.IsConflict(err) {
		return err
	}
	return errors.Join(err, p.reportNothing(ctx, err.Error()))
}

// watch watches all that the Work has, what it gives up included.
func (p *pass) watch() {
	resources := map[objectKey]schema.GroupVersionResource{}
	var recorded []placementv1.AppliedResourceMeta
	if p.owner != nil {
		recorded = p.owner.Status.AppliedResources
	}
	for i := range recorded {
		r := &recorded[i]
		if gvr, known := resourceOf(&r.WorkResourceIdentifier); known {
			resources[keyOfID(&r.WorkResourceIdentifier)] = gvr
		}
	}
	for _, m := range p.manifests {
		switch {
		case m.reason == placementv1.ReasonManifestDuplicated: // the other one says it all
		case m.gvr.Resource != "":
			resources[m.key] = m.gvr
		case m.key.name != "":
			delete(resources, m.key) // its kind is not served any more
		}
	}
	p.watches.set(p.work.Name, resources)
	p.watches.compareWhole(p.work.Name, p.compares())
}

// applyWaves applies the manifests wave by wave and tells whether one is not applied. A failure does not hold back later
// waves.
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
	p.autoscalers.set(p.work.Name, p.scaled())
	before := p.memory.failed
	p.memory.failed = map[objectKey]failure{}
	for _, m := range p.manifests {
		if m.reason == "" {
			continue
		}
		failed = failed || m.held == ""
		if m.key.name == "" || m.reason == placementv1.ReasonManifestDuplicated {
			continue
		}
		delete(p.memory.applied, m.key)
		p.memory.failed[m.key] = failure{
			manifest: m.hash, strategy: mark(&p.strategy), reason: m.reason, problem: m.problem, gvr: m.gvr, waits: waitsOf(m),
			held: m.held, drift: m.drift, diff: m.diff,
		}
		if before[m.key].reason != m.reason {
			log.FromContext(ctx).Info("Cannot apply an object", "work", p.work.Name, "object", m.key.String(), "reason", m.reason)
		}
	}
	return failed
}

// failure is what was said of an object that could not be applied.
type failure struct {
	manifest, strategy, reason, problem string
	gvr                                 schema.GroupVersionResource
	waits                               waits
	// held stands for the object that was left as it is, on purpose; then this is what becomes of it until it, or what is
	// wanted, changes. drift and diff are in what it differs.
	held        string
	drift, diff *comparison
}

func waitsOf(m *manifest) waits {
	return waits{
		works:    m.pending() || (m.reason == placementv1.ReasonManifestFailedToTakeOver && m.held == ""),
		kinds:    m.gvr.Resource == "" || m.reason == placementv1.ReasonManifestRolloutMissing,
		rollouts: m.reason == placementv1.ReasonManifestWaitingForRollout || m.reason == placementv1.ReasonManifestRolloutMissing,
	}
}

// and is what either waits for.
func (w waits) and(o waits) waits {
	return waits{works: w.works || o.works, kinds: w.kinds || o.kinds, rollouts: w.rollouts || o.rollouts}
}

func (p *pass) applyWave(ctx context.Context, wave []*manifest) {
	states := make([]*appliedState, len(wave))
	group := limited(parallel)
	for i, m := range wave {
		group.do(func() { states[i] = p.settle(ctx, m) })
	}
	group.wait()
	for i, m := range wave {
		if states[i] != nil {
			p.memory.applied[m.key] = *states[i]
		}
		if m.reason != "" {
			p.waits = p.waits.and(waitsOf(m))
		}
	}
}
