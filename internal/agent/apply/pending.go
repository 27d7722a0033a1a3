package apply

import (
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
)

// wait is since when an object waits to be applied, by a manifest.
type wait struct {
	manifest string
	since    time.Time
}

// waitsSince is since when an object waits to be applied as its manifest says: from now on, where it did not wait before.
// That it fails in between, or that the Work changes elsewhere, begins no new wait.
func (p *pass) waitsSince(m *manifest) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, waits := p.memory.pending[m.key]
	if !waits || w.manifest != m.hash {
		w = wait{m.hash, p.Clock.Now()}
		p.memory.pending[m.key] = w
	}
	return w.since
}

// overdue tells whether an object has waited as long as it may. It waits from the first time that this is asked.
func (p *pass) overdue(m *manifest, allowed time.Duration) bool {
	return p.Clock.Now().Sub(p.waitsSince(m)) >= allowed
}

// endWaits forgets the waits of objects that are applied, or that the Work does not list any more.
func (p *pass) endWaits() {
	p.mu.Lock()
	defer p.mu.Unlock()
	still := map[objectKey]wait{}
	for _, m := range p.manifests {
		if w, waits := p.memory.pending[m.key]; waits && m.reason != "" && m.reason != placementv1.ReasonManifestDuplicated {
			still[m.key] = w
		}
	}
	p.memory.pending = still
}

// hesitate tells whether to wait before the hub is told of manifests that are about to be applied.
func (p *pass) hesitate() bool {
	p.endWaits()
	var rest time.Duration
	for _, m := range p.manifests {
		switch {
		case m.pending():
			rest = max(rest, undecided-p.Clock.Now().Sub(p.waitsSince(m)))
		case m.reason != "":
			return false
		}
	}
	if rest <= 0 {
		return false
	}
	p.lookAgain(rest)
	return true
}
