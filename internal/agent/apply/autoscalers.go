package apply

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

var autoscalerResource = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// autoscalers tells when an autoscaler has come, gone, or scales something else, where replicas were left to one. Nothing
// is watched before that is so anywhere.
type autoscalers struct {
	client  dynamic.ResourceInterface
	changed func(work string)

	mu      sync.Mutex
	ctx     context.Context // set while started
	begun   bool            // replicas were left to one
	running bool
	// epochs count the changes in a namespace, and began one more for all of them: what happened before the watch began is
	// not known.
	epochs map[string]int
	began  int
	works  map[string]map[string]bool // Work → the namespaces in which it left replicas to one
}

func newAutoscalers(client dynamic.ResourceInterface, changed func(string)) *autoscalers {
	return &autoscalers{client: client, changed: changed, epochs: map[string]int{}, works: map[string]map[string]bool{}}
}

// Start watches, if there is a reason to, or as soon as there is one.
func (a *autoscalers) Start(ctx context.Context) error {
	a.mu.Lock()
	a.ctx = ctx
	a.run()
	a.mu.Unlock()
	<-ctx.Done()
	return nil
}

// epoch is another number after each change in a namespace.
func (a *autoscalers) epoch(namespace string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.began + a.epochs[namespace]
}

// follow has a Work looked at again when an autoscaler of a namespace has changed since an epoch.
func (a *autoscalers) follow(work, namespace string, since int) {
	a.mu.Lock()
	if a.works[work] == nil {
		a.works[work] = map[string]bool{}
	}
	a.works[work][namespace] = true
	a.begun = true
	a.run()
	late := a.began+a.epochs[namespace] != since
	a.mu.Unlock()
	if late {
		a.changed(work)
	}
}

// set says in which namespaces a Work leaves replicas to an autoscaler.
func (a *autoscalers) set(work string, namespaces map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(namespaces) == 0 {
		delete(a.works, work)
		return
	}
	a.works[work] = namespaces
}

// run begins the watch. The lock is held.
func (a *autoscalers) run() {
	if a.running || !a.begun || a.ctx == nil {
		return
	}
	a.running = true
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return a.client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return a.client.Watch(ctx, o)
		},
	}
	store := &targetStore{listed: a.listed, signals: signals{mark: targetOf, changed: a.event, marks: map[cache.ObjectName]string{}}}
	reflector := cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, store,
		cache.ReflectorOptions{Name: autoscalerResource.Resource, TypeDescription: autoscalerResource.String()})
	go reflector.RunWithContext(a.ctx)
}

// event takes note of a change of one autoscaler.
func (a *autoscalers) event(o cache.ObjectName) {
	a.mu.Lock()
	a.epochs[o.Namespace]++
	var tell []string
	for work, namespaces := range a.works {
		if namespaces[o.Namespace] {
			tell = append(tell, work)
		}
	}
	a.mu.Unlock()
	for _, work := range tell {
		a.changed(work)
	}
}

// listed takes note that the watch has begun.
func (a *autoscalers) listed() {
	a.mu.Lock()
	a.began++
	var tell []string
	for work := range a.works {
		tell = append(tell, work)
	}
	a.mu.Unlock()
	for _, work := range tell {
		a.changed(work)
	}
}

// targetOf stands for what an autoscaler scales.
func targetOf(o metav1.Object) string {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return ""
	}
	ref, _, _ := unstructured.NestedStringMap(u.Object, "spec", "scaleTargetRef")
	return ref["apiVersion"] + " " + ref["kind"] + " " + ref["name"]
}

// targetStore is the store of the reflector: of an autoscaler it keeps what it scales.
type targetStore struct {
	signals
	listed func()
	once   sync.Once
}

// Replace is told all that there is: a first time when the watch begins.
func (s *targetStore) Replace(all []any, version string) error {
	err := s.signals.Replace(all, version)
	s.once.Do(s.listed)
	return err
}

// Transformer reduces an autoscaler to what it scales before it is kept anywhere.
func (s *targetStore) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		full, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil
		}
		lean := &unstructured.Unstructured{Object: map[string]any{}}
		lean.SetGroupVersionKind(full.GroupVersionKind())
		lean.SetNamespace(full.GetNamespace())
		lean.SetName(full.GetName())
		lean.SetResourceVersion(full.GetResourceVersion())
		if ref, found, _ := unstructured.NestedMap(full.Object, "spec", "scaleTargetRef"); found {
			lean.Object["spec"] = map[string]any{"scaleTargetRef": ref}
		}
		return lean, nil
	}
}

// scaled are the namespaces in which the Work leaves replicas to an autoscaler.
func (p *pass) scaled() map[string]bool {
	namespaces := map[string]bool{}
	for key, state := range p.memory.applied {
		if state.kept.scaled {
			namespaces[key.namespace] = true
		}
	}
	p.scaledFindings(namespaces)
	return namespaces
}
