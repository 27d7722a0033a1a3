package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// lifeOf stands for whether an AppliedWork is there, goes, and is held: its status is ours.
func lifeOf(o metav1.Object) string {
	return fmt.Sprint(o.GetUID(), o.GetGeneration(), o.GetDeletionTimestamp() != nil, o.GetFinalizers())
}

// signal calls a function whenever an object of a resource has come, gone, or changed so that its mark is another. It keeps
// nothing but names and marks.
func (w *watches) signal(ctx context.Context, gvr schema.GroupVersionResource, mark func(metav1.Object) string, changed func(name string)) {
	r := w.heads.Resource(gvr)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return r.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return r.Watch(ctx, o)
		},
	}
	s := &signals{mark: mark, changed: func(o cache.ObjectName) { changed(o.Name) }, marks: map[cache.ObjectName]string{}}
	reflector := cache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, s, cache.ReflectorOptions{Name: gvr.Resource, TypeDescription: gvr.String()})
	go reflector.RunWithContext(ctx)
}

// signals is the store of a reflector that keeps names and marks.
type signals struct {
	mark    func(metav1.Object) string
	changed func(cache.ObjectName)
	marks   map[cache.ObjectName]string // used by the reflector alone
}

// Add, Update, Delete, Replace and Resync are called by the reflector.
func (s *signals) Add(o any) error { return s.Update(o) }
func (s *signals) Resync() error   { return nil }

func (s *signals) Update(o any) error {
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	name := cache.MetaObjectToName(m)
	if mark := s.mark(m); s.marks[name] != mark {
		s.marks[name] = mark
		s.changed(name)
	}
	return nil
}

func (s *signals) Delete(o any) error {
	m, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	s.gone(cache.MetaObjectToName(m))
	return nil
}

func (s *signals) gone(name cache.ObjectName) {
	delete(s.marks, name)
	s.changed(name)
}

func (s *signals) Replace(all []any, _ string) error {
	there := map[cache.ObjectName]bool{}
	for _, o := range all {
		m, err := meta.Accessor(o)
		if err != nil {
			return err
		}
		there[cache.MetaObjectToName(m)] = true
		if err := s.Update(o); err != nil {
			return err
		}
	}
	for name := range s.marks {
		if !there[name] {
			s.gone(name)
		}
	}
	return nil
}

// Transformer reduces an object to what a mark is made of before it is kept anywhere: definitions are large.
func (s *signals) Transformer() cache.TransformFunc {
	return func(o any) (any, error) {
		m, ok := o.(*metav1.PartialObjectMetadata)
		if !ok {
			return o, nil
		}
		m.ObjectMeta = metav1.ObjectMeta{
			Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
			DeletionTimestamp: m.DeletionTimestamp, Finalizers: m.Finalizers,
		}
		return m, nil
	}
}
