package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// comparison is in what an object of the member differs from its manifest.
type comparison struct {
	details []placementv1.PatchDetail
	// generation is the object's in the member; nil where there is no object.
	generation *int64
	// degraded tells that the member could not say how it would take the manifest, which was compared as it stands.
	degraded bool
}

// differs tells whether there is any difference.
func (c *comparison) differs() bool { return c != nil && len(c.details) > 0 }

// whole tells whether all of an object is compared, and not what its manifest says alone.
func (p *pass) whole() bool {
	return p.strategy.ComparisonOption == placementv1.ComparisonOptionTypeFull
}

// compare asks the member what the object would become by the manifest, and compares that with what it is. Nothing is
// written: the request is a dry run. What others are in charge of for the time being counts as the manifest's.
func (w *attempt) compare(ctx context.Context) (*comparison, error) {
	if w.live == nil {
		return &comparison{details: drift.Missing()}, nil
	}
	manifest := w.wanted.DeepCopy()
	r, err := w.lookAtRelease(ctx)
	if err != nil {
		return nil, err
	}
	w.manifest.kept = kept{held: r.now}
	if r.now && w.whole() {
		for _, field := range []string{"paused", "strategy"} { // said or not, they are Kruise's until it is done
			if value, has, err := unstructured.NestedFieldCopy(w.live.Object, "spec", field); has && err == nil {
				if err := unstructured.SetNestedField(manifest.Object, value, "spec", field); err != nil {
					return nil, fmt.Errorf("leave spec.%s to Kruise: %w", field, err)
				}
			}
		}
	}
	if _, err := retain(manifest, w.live, r.now, func() (bool, error) { return w.autoscaled(ctx) }); err != nil {
		return nil, err
	}
	found := &comparison{generation: ptr.To(w.live.GetGeneration())}
	would, err := w.rehearse(ctx, manifest.DeepCopy())
	switch {
	case err == nil:
		found.details = drift.Compare(w.live, would, manifest, false)
	case unreachable(err), apierrors.IsConflict(err), replaced(err), apierrors.IsNotFound(err):
		return nil, err
	default:
		found.degraded = true
		found.details = drift.Compare(w.live, manifest, manifest, !w.whole())
	}
	return found, nil
}

// rehearse returns what the member's object would become.
func (w *attempt) rehearse(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if w.whole() {
		return w.rehearseReplacing(ctx, manifest)
	}
	return w.rehearseApply(ctx, manifest)
}

// rehearseApply returns what the object would become if a manifest were applied.
func (w *attempt) rehearseApply(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	manifest.SetUID(w.live.GetUID())
	for range rounds {
		data, err := json.Marshal(manifest.Object)
		if err != nil {
			return nil, fmt.Errorf("encode the object: %w", err)
		}
		would, err := w.client.Patch(ctx, w.manifest.id.Name, types.ApplyPatchType, data, metav1.PatchOptions{
			DryRun: []string{metav1.DryRunAll}, FieldManager: placementv1.FieldManager, Force: ptr.To(true), FieldValidation: metav1.FieldValidationIgnore,
		})
		if err == nil {
			return would, nil
		}
		dropped := false
		for _, path := range unknownFields(err) {
			dropped = dropField(manifest.Object, path) || dropped
		}
		if !dropped {
			return nil, err
		}
	}
	return nil, errors.New("the member knows too few of the object's fields")
}

// rehearseReplacing is for who wants to know of every field: as if the object were replaced by the manifest, with the
// defaults that the member gives it.
func (w *attempt) rehearseReplacing(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	manifest.SetUID(w.live.GetUID())
	manifest.SetResourceVersion(w.live.GetResourceVersion())
	manifest.SetOwnerReferences(w.live.GetOwnerReferences())
	manifest.SetFinalizers(w.live.GetFinalizers())
	for _, path := range allotted[w.manifest.key.GroupKind] {
		if _, said, _ := unstructured.NestedFieldNoCopy(manifest.Object, path...); said {
			continue
		}
		if value, has, err := unstructured.NestedFieldCopy(w.live.Object, path...); has && err == nil {
			if err := unstructured.SetNestedField(manifest.Object, value, path...); err != nil {
				return nil, fmt.Errorf("copy what the member allotted: %w", err)
			}
		}
	}
	return w.client.Update(ctx, manifest, metav1.UpdateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: placementv1.FieldManager, FieldValidation: metav1.FieldValidationIgnore,
	})
}

// allotted are fields that each cluster fills in by itself and that nobody may change afterwards: of them no manifest says
// anything, and no difference is meant.
var allotted = map[schema.GroupKind][][]string{
	{Kind: "PersistentVolumeClaim"}:              {{"spec", "volumeName"}},
	{Kind: "Namespace"}:                          {{"spec", "finalizers"}},
	{Kind: "Pod"}:                                {{"spec", "nodeName"}, {"spec", "tolerations"}, {"spec", "volumes"}},
	{Group: "batch", Kind: "Job"}:                {{"spec", "selector"}},
	{Group: "storage.k8s.io", Kind: "CSIDriver"}: {{"spec", "storageCapacity"}},
}

// finding is what a comparison came to, as long as neither the manifest nor the object changes.
type finding struct {
	manifest, strategy string
	// object stands for the object that was compared; empty where there was none.
	object string
	*comparison
	kept kept
}

// mark stands for an apply strategy.
func mark(s *placementv1.ApplyStrategy) string {
	data, err := json.Marshal(s)
	if err != nil {
		return "" // an enumeration and two switches, which can be encoded
	}
	return string(data)
}

// reportDiffs compares all objects of the Work, writes nothing into the member, and reports what was found.
func (p *pass) reportDiffs(ctx context.Context) error {
	if err := p.findAppliedWork(ctx); err != nil {
		return p.blocked(ctx, err)
	}
	p.manifests = decode(p.work)
	p.resolve(ctx)
	p.watch()
	failed := p.inParallel(ctx, p.manifests, p.diff)
	p.autoscalers.set(p.work.Name, p.scaled())
	p.end(failed)
	return p.report(ctx)
}

// findAppliedWork finds the AppliedWork of the pass; there is none where the Work has never been applied. One that somebody
// deletes is let go, since the garbage collector would take all with it that it owns.
func (p *pass) findAppliedWork(ctx context.Context) error {
	applied, err := p.getAppliedWork(ctx, p.work.Name)
	if err != nil || applied == nil {
		return err
	}
	if !applied.DeletionTimestamp.IsZero() {
		p.memory.carried = applied.Status.AppliedResources
		if err := p.recall(ctx, applied, p.work); err != nil {
			return err
		}
		letGo, err := p.letGo(ctx, applied)
		p.memory.letGo.Insert(letGo...)
		return err
	}
	p.own(applied)
	return nil
}

// inParallel does something with those manifests with which nothing is wrong so far, and tells whether something is then.
func (p *pass) inParallel(ctx context.Context, manifests []*manifest, do func(context.Context, *manifest) *finding) (failed bool) {
	found := make([]*finding, len(manifests))
	group := limited(parallel)
	for i, m := range manifests {
		if m.reason == "" && m.diff == nil {
			group.do(func() { found[i] = do(ctx, m) })
		}
	}
	group.wait()
	before := p.memory.findings
	fresh := map[objectKey]finding{}
	for i, m := range manifests {
		if found[i] != nil {
			fresh[m.key] = *found[i]
		} else if last, known := before[m.key]; known && m.reason != "" {
			fresh[m.key] = last
		}
		if m.reason != "" {
			failed = true
			p.waits = p.waits.and(waitsOf(m))
		}
	}
	p.memory.findings = fresh
	return failed
}

// diff compares one object with its manifest; again only where one of them has changed.
func (p *pass) diff(ctx context.Context, m *manifest) *finding {
	last, known := p.memory.findings[m.key]
	seen := p.watches.get(m.gvr, m.key)
	if known && last.manifest == m.hash && last.strategy == mark(&p.strategy) && seen.asCompared(last.object) &&
		(seen.object == nil || p.stillKept(last.kept, m.key, seen.object)) {
		m.diff = last.comparison
		return &last
	}
	wanted, err := m.object()
	if err != nil {
		m.fail(placementv1.ReasonManifestDecodingErred, "%v", err)
		return nil
	}
	var f *finding
	for range conflicts {
		if f, err = p.look(ctx, m, wanted); !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil || m.reason != "" {
		p.explain(m, err)
		return nil
	}
	m.diff = f.comparison
	return f
}

// look reads an object and compares it.
func (p *pass) look(ctx context.Context, m *manifest, wanted *unstructured.Unstructured) (*finding, error) {
	client := p.resource(m.gvr, m.id.Namespace)
	live, err := client.Get(ctx, m.id.Name, metav1.GetOptions{})
	switch {
	case unserved(err):
		p.kinds.forget()
		return nil, err
	case apierrors.IsNotFound(err):
		live = nil
	case err != nil:
		return nil, err
	}
	w := &attempt{pass: p, manifest: m, client: client, wanted: wanted.DeepCopy(), live: live}
	found, err := w.compare(ctx)
	if err != nil {
		return nil, err
	}
	f := &finding{manifest: m.hash, strategy: mark(&p.strategy), comparison: found, kept: m.kept}
	if live != nil {
		f.object = drift.Hash(live)
		p.sight(m, live)
	}
	return f, nil
}

// scaledFindings are the namespaces in which a comparison left replicas to an autoscaler.
func (p *pass) scaledFindings(namespaces map[string]bool) {
	for key := range maps.Keys(p.memory.findings) {
		if p.memory.findings[key].kept.scaled {
			namespaces[key.namespace] = true
		}
	}
}
