package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// pass is one pass over one Work.
type pass struct {
	*Applier
	// work belongs to the cache and is not changed.
	work      *placementv1.Work
	self      *view
	works     works
	memory    *workMemory
	owner     *placementv1.AppliedWork
	stored    []placementv1.AppliedResourceMeta // what the member has recorded
	manifests []*manifest
	// retry tells that what has failed is due to be tried again.
	retry bool
	// removing are objects that are being deleted; refused are those of which that failed, with the member's error.
	removing []string
	refused  []error
	// incomplete tells that objects stay because not all Works that carry the snapshot are there yet.
	incomplete bool
	// waits is what the next try depends on.
	waits waits
	// strategy is the Work's apply strategy.
	strategy placementv1.ApplyStrategy
	// leaving are the AppliedWorks that go with this one, when the cluster leaves; nil when it does not.
	leaving sets.Set[string]
	// again is when to look again; 0 means when something changes.
	again time.Duration
}

func (p *pass) lookAgain(after time.Duration) {
	if p.again == 0 || after < p.again {
		p.again = max(after, time.Millisecond)
	}
}

// begin prepares a pass over a Work.
func (a *Applier) begin(ctx context.Context, work *placementv1.Work) (*pass, error) {
	// Until the pass knows what it waits for, it waits for everything: whatever happens meanwhile brings another pass.
	a.mu.Lock()
	a.waiting[work.Name] = waits{works: true, kinds: true, rollouts: true}
	woken := a.woken[work.Name]
	delete(a.woken, work.Name)
	a.mu.Unlock()

	all, err := a.readWorks(ctx)
	if err != nil {
		return nil, err
	}
	p := &pass{Applier: a, work: work, works: all, self: all[work.Name], memory: a.remember(work.Name), strategy: work.Spec.ApplyStrategy.WithDefaults()}
	if p.self == nil {
		return nil, fmt.Errorf("read Work %s: it was there a moment ago", work.Name)
	}
	if p.memory.uid != work.UID {
		*p.memory = *newMemory()
		p.memory.uid = work.UID
	}
	if p.memory.generation != work.Generation {
		p.memory.generation, p.memory.failures, p.memory.released = work.Generation, 0, nil
		woken = true
	}
	p.retry = woken || !a.Clock.Now().Before(p.memory.retryAt)
	return p, nil
}

// end writes down what the Work waits for, and when it is tried again after a failure.
func (p *pass) end(failed bool) {
	switch {
	case !failed:
		p.memory.failures, p.memory.retryAt = 0, time.Time{}
	case p.retry:
		p.memory.failures++
		p.memory.retryAt = p.Clock.Now().Add(backoff(p.memory.failures))
		p.lookAgain(backoff(p.memory.failures))
	default:
		p.lookAgain(p.memory.retryAt.Sub(p.Clock.Now()))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[p.work.Name] = p.waits
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

// event tells whoever looks at the Work what was done with an object in the member. It names places and never values. The
// object is named apart from the text, since events that differ in that alone are taken for the same one once more.
func (p *pass) event(about objectKey, version, kind, reason, action, text string) {
	if p.Recorder != nil && p.self != nil && p.active {
		object := &corev1.ObjectReference{Namespace: about.namespace, Name: about.name}
		object.SetGroupVersionKind(about.WithVersion(version))
		p.Recorder.Eventf(p.work, object, kind, reason, action, "%s", text)
	}
}

// resolve finds the resources of all manifests. A kind that the member does not know is asked for again when failures are
// tried again, or when a definition has come.
func (p *pass) resolve(ctx context.Context) {
	for _, m := range p.manifests {
		if m.reason != "" || p.failedBefore(m) {
			continue
		}
		r, err := p.kinds.find(ctx, m.kind())
		switch {
		case errors.Is(err, errUnknownKind):
			p.waits.kinds = true
			if along, _ := p.definitionOf(m.key.GroupKind); along != nil && p.strategy.ReportsOnly() {
				m.diff = &comparison{details: drift.Missing()} // its definition is not there either
				continue
			}
			p.unknownKind(m)
		case unreachable(err):
			m.fail(placementv1.ReasonManifestPreparing, doesNotAnswer, err)
		case err != nil:
			m.fail(placementv1.ReasonManifestFailedToFindObject, "Failed to look for the object in the member (error: %v)", err)
		case r.namespaced && m.id.Namespace == "":
			m.fail(placementv1.ReasonManifestDecodingErred, "%s lives in namespaces in the member, and the manifest has no metadata.namespace", m.id.Kind)
		case !r.namespaced && m.id.Namespace != "":
			m.fail(placementv1.ReasonManifestDecodingErred, "%s does not live in namespaces in the member, and the manifest has the namespace %q", m.id.Kind, m.id.Namespace)
		default:
			m.gvr, m.id.Resource = r.GroupVersionResource, r.Resource
		}
	}
}

// failedBefore gives a manifest the outcome that it had, if it has failed and is not due to be tried again.
func (p *pass) failedBefore(m *manifest) bool {
	last, failed := p.memory.failed[m.key]
	if !failed || last.manifest != m.hash || last.strategy != mark(&p.strategy) {
		return false
	}
	// What was left as it is on purpose is looked at again when it has changed, and not before; what has failed, when it is due.
	if unchanged := p.watches.get(last.gvr, m.key).asCompared(last.held); (last.held == "" && p.retry) || (last.held != "" && !unchanged) {
		return false
	}
	m.reason, m.problem, m.gvr, m.id.Resource = last.reason, last.problem, last.gvr, last.gvr.Resource
	m.held, m.drift, m.diff = last.held, last.drift, last.diff
	p.waits = p.waits.and(last.waits)
	return true
}
