package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/release"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// rollouts knows the member's Kruise Rollouts, whoever made them, as long as a Work has a Deployment that one may release and the
// member serves the kind. Of each it keeps what tells how far its release is.
type rollouts struct {
	member  dynamic.Interface
	changed func(work string)

	mu      sync.Mutex
	ctx     context.Context // set while started
	gvr     schema.GroupVersionResource
	stop    context.CancelFunc // of the watch that runs; nil where none does
	seen    map[cache.ObjectName]*unstructured.Unstructured
	marks   map[cache.ObjectName]string
	inspace map[string]map[string]bool // Work → the namespaces of its Deployments
}

func newRollouts(member dynamic.Interface, changed func(string)) *rollouts {
	return &rollouts{member: member, changed: changed, inspace: map[string]map[string]bool{}}
}

// Start watches, if there is a reason to, or as soon as there is one.
func (r *rollouts) Start(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	r.run()
	r.mu.Unlock()
	<-ctx.Done()
	return nil
}

// set says in which namespaces a Work has Deployments, and where the member has Rollouts; an empty resource is nowhere.
func (r *rollouts) set(work string, gvr schema.GroupVersionResource, namespaces map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(namespaces) == 0 {
		delete(r.inspace, work)
	} else {
		r.inspace[work] = namespaces
		if r.gvr != gvr {
			r.halt()
			r.gvr = gvr
		}
	}
	if len(r.inspace) == 0 {
		r.halt()
	}
	r.run()
}

// halt ends the watch. The lock is held.
func (r *rollouts) halt() {
	if r.stop != nil {
		r.stop()
	}
	r.stop, r.seen, r.marks = nil, nil, nil
}

// run begins the watch, if it is to run. The lock is held.
func (r *rollouts) run() {
	if r.stop != nil || r.ctx == nil || len(r.inspace) == 0 || r.gvr.Empty() {
		return
	}
	ctx, stop := context.WithCancel(r.ctx)
	r.stop, r.seen, r.marks = stop, map[cache.ObjectName]*unstructured.Unstructured{}, map[cache.ObjectName]string{}
	resource := r.member.Resource(r.gvr)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return resource.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, o)
		},
	}
	store := &rolloutStore{rollouts: r, run: ctx}
	reflector := cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, store,
		cache.ReflectorOptions{Name: r.gvr.Resource, TypeDescription: r.gvr.String()})
	go reflector.RunWithContext(ctx)
}

// of returns the Rollouts, as they were seen last, that release a Deployment.
func (r *rollouts) of(key objectKey) []*unstructured.Unstructured {
	if key.GroupKind != deployments {
		return nil
	}
	r.mu.Lock()
	var near []*unstructured.Unstructured
	for name, rollout := range r.seen {
		if name.Namespace == key.namespace {
			near = append(near, rollout)
		}
	}
	r.mu.Unlock()
	found := release.ReferTo(key.name, near)
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int { return compareText(a.GetName(), b.GetName()) })
	return found
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// works are the names of the Works that have Deployments.
func (r *rollouts) works() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.inspace))
}

// note takes note of a Rollout, nil where it is gone, and has the Works looked at that have Deployments beside it.
func (r *rollouts) note(run context.Context, name cache.ObjectName, rollout *unstructured.Unstructured) {
	r.mu.Lock()
	if run.Err() != nil || r.seen == nil { // a watch that has ended tells of nothing any more
		r.mu.Unlock()
		return
	}
	mark := ""
	if rollout != nil {
		mark = rolloutMark(rollout)
		r.seen[name] = rollout
	} else {
		delete(r.seen, name)
	}
	same := r.marks[name] == mark
	if r.marks[name] = mark; mark == "" {
		delete(r.marks, name)
	}
	var tell []string
	for work, namespaces := range r.inspace {
		if !same && namespaces[name.Namespace] {
			tell = append(tell, work)
		}
	}
	r.mu.Unlock()
	for _, work := range tell {
		r.changed(work)
	}
}

// rolloutMark stands for what is kept of a Rollout, its version aside.
func rolloutMark(rollout *unstructured.Unstructured) string {
	data, err := json.Marshal([]any{rollout.GetUID(), rollout.GetGeneration(), rollout.GetDeletionTimestamp() != nil, rollout.Object["spec"], rollout.Object["status"]})
	if err != nil {
		return rollout.GetResourceVersion()
	}
	return string(data)
}

// rolloutStore is the store of one watch's reflector.
type rolloutStore struct {
	*rollouts
	run context.Context
}

// Add, Update, Delete, Replace, Resync and Transformer are called by the reflector.
func (s *rolloutStore) Add(o any) error { return s.Update(o) }
func (s *rolloutStore) Resync() error   { return nil }

func (s *rolloutStore) Update(o any) error {
	if rollout, ok := o.(*unstructured.Unstructured); ok {
		s.note(s.run, cache.MetaObjectToName(rollout), rollout)
	}
	return nil
}

func (s *rolloutStore) Delete(o any) error {
	if rollout, ok := o.(*unstructured.Unstructured); ok {
		s.note(s.run, cache.MetaObjectToName(rollout), nil)
	}
	return nil
}

func (s *rolloutStore) Replace(all []any, _ string) error {
	there := map[cache.ObjectName]bool{}
	for _, o := range all {
		if rollout, ok := o.(*unstructured.Unstructured); ok {
			there[cache.MetaObjectToName(rollout)] = true
			_ = s.Update(rollout)
		}
	}
	s.mu.Lock()
	var gone []cache.ObjectName
	for name := range s.seen {
		if !there[name] {
			gone = append(gone, name)
		}
	}
	s.mu.Unlock()
	for _, name := range gone {
		s.note(s.run, name, nil)
	}
	return nil
}

// Transformer reduces a Rollout to what tells how far its release is before it is kept anywhere.
func (s *rolloutStore) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		full, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil
		}
		return leanRollout(full), nil
	}
}

func leanRollout(full *unstructured.Unstructured) *unstructured.Unstructured {
	lean := &unstructured.Unstructured{Object: map[string]any{}}
	lean.SetGroupVersionKind(full.GroupVersionKind())
	lean.SetNamespace(full.GetNamespace())
	lean.SetName(full.GetName())
	lean.SetUID(full.GetUID())
	lean.SetGeneration(full.GetGeneration())
	lean.SetResourceVersion(full.GetResourceVersion())
	lean.SetDeletionTimestamp(full.GetDeletionTimestamp())
	for _, path := range [][]string{
		{"spec", "workloadRef"}, {"spec", "disabled"}, {"spec", "strategy", "paused"}, {"spec", "strategy", "canary", "steps"}, {"spec", "strategy", "blueGreen", "steps"},
		{"status", "phase"}, {"status", "observedGeneration"}, {"status", "conditions"},
		{"status", "canaryStatus", "currentStepIndex"}, {"status", "canaryStatus", "currentStepState"},
		{"status", "blueGreenStatus", "currentStepIndex"}, {"status", "blueGreenStatus", "currentStepState"},
	} {
		if value, has, err := unstructured.NestedFieldNoCopy(full.Object, path...); has && err == nil {
			_ = unstructured.SetNestedField(lean.Object, runtime.DeepCopyJSONValue(value), path...)
		}
	}
	return lean
}

// whereServed is where a kind's objects are; empty where the member does not serve it.
func whereServed(r resource, err error) (schema.GroupVersionResource, error) {
	if errors.Is(err, errUnknownKind) {
		return schema.GroupVersionResource{}, nil
	}
	return r.GroupVersionResource, err
}

// followRollouts has the Work looked at when a Rollout of the member that may release one of its Deployments has changed.
func (p *pass) followRollouts(ctx context.Context) {
	namespaces := map[string]bool{}
	for _, m := range p.manifests {
		if m.key.GroupKind == deployments && m.gvr.Resource != "" {
			namespaces[m.key.namespace] = true
		}
	}
	if len(namespaces) == 0 {
		p.rollouts.set(p.work.Name, schema.GroupVersionResource{}, nil)
		return
	}
	gvr, err := whereServed(p.kinds.recall(ctx, kruise.Rollouts, p.Clock.Now()))
	if err != nil {
		return // what is watched stays so
	}
	p.rollouts.set(p.work.Name, gvr, namespaces)
}

// rolloutsNow reads the member's Rollouts that release a Deployment; served tells whether it has the kind.
func (p *pass) rolloutsNow(ctx context.Context, key objectKey) (found []*unstructured.Unstructured, served bool, err error) {
	gvr, err := whereServed(p.kinds.find(ctx, kruise.Rollouts)) // of now: a template is decided on by it
	if err != nil || gvr.Empty() {
		return nil, false, err
	}
	list, err := p.member.Resource(gvr).Namespace(key.namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		p.kinds.forget()
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("list the Rollouts of namespace %s: %w", key.namespace, err)
	}
	all := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return release.ReferTo(key.name, all), true, nil
}

// inRelease says why an object stays for now that is not wanted any more: Kruise is in the middle of releasing it, or it is the Rollout
// that does so, without which all pods would be replaced at once. A cluster that leaves the fleet waits for nothing.
func (p *pass) inRelease(ctx context.Context, live *unstructured.Unstructured, key objectKey) (why string, err error) {
	if !p.active || live.GetAnnotations()[placementv1.AnnotationDeleteInRelease] == "true" {
		return "", nil
	}
	const ends = "; it is removed when that release ends, or at once where the object here has the annotation %s: \"true\""
	switch {
	case kruise.IsRollout(key.GroupKind) && release.InRelease(live):
		return fmt.Sprintf("it is in the middle of a release"+ends, placementv1.AnnotationDeleteInRelease), nil
	case key.GroupKind == deployments:
		found, _, err := p.rolloutsNow(ctx, key)
		if err != nil || !release.Releasing(live, found) {
			return "", err
		}
		return fmt.Sprintf("Kruise is in the middle of releasing it"+ends, placementv1.AnnotationDeleteInRelease), nil
	}
	return "", nil
}

// releasing tells whether Kruise is releasing a Deployment, as both were seen last.
func (p *pass) releasing(key objectKey, seen *unstructured.Unstructured) bool {
	return key.GroupKind == deployments && release.Releasing(seen, p.rollouts.of(key))
}
