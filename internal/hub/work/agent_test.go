package work

import (
	"context"
	"slices"
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// agent plays a member's agent: it answers for each generation of each Work.
type agent struct {
	*fixture
	namespace string

	mu sync.Mutex
	// mood is how it answers: "" at once that all is well, or one of the below.
	mood string
	// detail is what it says of something that takes its time.
	detail string
	// removed are the Works whose workloads it was told to remove, released those it was not.
	removed, released []string
}

const (
	silent   = "silent"   // does not answer
	refuses  = "refuses"  // cannot apply
	starts   = "starts"   // applies what then takes its time
	clinging = "clinging" // cannot remove
)

// be has the agent answer in another way from now on, for what is there too.
func (a *agent) be(mood string) {
	a.t.Helper()
	a.mu.Lock()
	a.mood = mood
	a.mu.Unlock()
	a.answerAll()
}

// say has the agent tell another detail of what takes its time.
func (a *agent) say(detail string) {
	a.t.Helper()
	a.mu.Lock()
	a.detail = detail
	a.mu.Unlock()
	a.answerAll()
}

func (a *agent) answerAll() {
	a.t.Helper()
	var works placementv1.WorkList
	if err := a.List(a.t.Context(), &works, client.InNamespace(a.namespace)); err != nil {
		a.t.Fatalf("list Works: %v", err)
	}
	for i := range works.Items {
		a.answer(a.t.Context(), &works.Items[i])
	}
}

func (a *agent) run(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := a.Watch(ctx, &placementv1.WorkList{}, client.InNamespace(a.namespace))
		if err != nil {
			continue
		}
		for event := range w.ResultChan() {
			if work, ok := event.Object.(*placementv1.Work); ok && event.Type != watch.Deleted {
				a.answer(ctx, work)
			}
		}
	}
}

func (a *agent) answer(ctx context.Context, w *placementv1.Work) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := w.DeepCopy()
	switch {
	case a.mood == silent:
		return
	case !w.DeletionTimestamp.IsZero():
		a.remove(w)
	default:
		a.apply(w)
	}
	if slices.EqualFunc(before.Status.Conditions, w.Status.Conditions, sameCondition) {
		return
	}
	// A conflict, or that it is gone, brings another event.
	err := a.Status().Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err == nil && !w.DeletionTimestamp.IsZero() {
		if c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionRemoved); c.Reason == placementv1.ReasonRemovalNotConfirmed || c.Reason == placementv1.ReasonResourcesReleased {
			a.released = append(a.released, w.Name)
		} else if c.Status == metav1.ConditionTrue {
			a.removed = append(a.removed, w.Name)
		}
	}
}

func sameCondition(x, y metav1.Condition) bool {
	return x.Type == y.Type && x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message && x.ObservedGeneration == y.ObservedGeneration
}

func (a *agent) apply(w *placementv1.Work) {
	set := func(c metav1.Condition) {
		c.ObservedGeneration = w.Generation
		meta.SetStatusCondition(&w.Status.Conditions, c)
	}
	w.Status.ManifestConditions = nil
	switch a.mood {
	case refuses:
		set(refused)
		meta.RemoveStatusCondition(&w.Status.Conditions, placementv1.ConditionAvailable)
		w.Status.ManifestConditions = []placementv1.ManifestCondition{dated(denied, w.Generation)}
	case starts:
		set(applied)
		waits, manifest := waiting, dated(starting, w.Generation)
		if a.detail != "" {
			waits.Message, manifest.Conditions[1].Message = a.detail, a.detail
		}
		set(waits)
		w.Status.ManifestConditions = []placementv1.ManifestCondition{manifest}
	default:
		set(applied)
		set(available)
	}
}

// dated gives a manifest's conditions what the API asks of them.
func dated(m placementv1.ManifestCondition, generation int64) placementv1.ManifestCondition {
	out := *m.DeepCopy()
	for i := range out.Conditions {
		out.Conditions[i].ObservedGeneration, out.Conditions[i].LastTransitionTime = generation, metav1.Now()
	}
	return out
}

func (a *agent) remove(w *placementv1.Work) {
	c := metav1.Condition{Type: placementv1.ConditionRemoved, Status: metav1.ConditionTrue, Reason: placementv1.ReasonResourcesRemoved, ObservedGeneration: w.Generation}
	switch {
	case !isConfirmed(w):
		c.Reason = placementv1.ReasonRemovalNotConfirmed
	case w.Annotations[placementv1.AnnotationRemovalConfirmed] == placementv1.RemovalAbandons:
		c.Reason = placementv1.ReasonResourcesReleased
	case a.mood == clinging:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, placementv1.ReasonRemovalFailed, "the member does not let go of it"
	}
	meta.SetStatusCondition(&w.Status.Conditions, c)
}

func (a *agent) story() (removed, released []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.removed), slices.Clone(a.released)
}
