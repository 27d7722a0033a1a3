package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override/policy"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"github.com/fleetwright/fleetwright/internal/schedule"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wish is what the Works of a binding are to be.
type wish struct {
	index string
	works []*placementv1.Work // without manifests
	// parts and uids are the snapshot objects that the manifests come from; empty where they need not be read.
	parts []string
	uids  []types.UID
	// envelopes are, for each of the Works, the ID of the envelope that it carries; empty where it carries none.
	envelopes []string
	// there are the binding's Works as they are, and before, once it was needed, are their manifests.
	there  []*placementv1.Work
	before map[placementv1.ResourceIdentifier][]byte
	// policies are the override policies that change something of the content in the cluster.
	policies policy.Set
}

// sync makes the Works what the binding says, and fills in what came of it. Works that are not needed any more are deleted
// only after the others are written, so that an agent always finds the new place of an object before the old one is gone.
func (c *Controller) sync(ctx context.Context, t render.Target, works map[string]*placementv1.Work, o *observed) error {
	master, err := c.master(ctx, t, works, o.binding)
	if err != nil {
		return err
	}
	if master == "" {
		o.problem = waitFor("No revision of the object has been made yet")
		return nil
	}
	w, problem, err := c.wish(ctx, t, works, master, o.cluster)
	if err != nil || problem != nil {
		o.problem = problem
		return err
	}
	if !c.follows() {
		o.index = w.index
	}
	o.overridden = !w.policies.Empty()
	if o.problem = hindrance(t, works, w, o); o.problem != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(works)) {
		if there := works[name]; t.Belongs(there) && there.DeletionTimestamp.IsZero() {
			w.there = append(w.there, there)
		}
	}
	if (!t.Overrides.Empty() || o.overridden) && len(w.there) > 1 && !allSame(w.works, works) {
		if err := c.readBefore(ctx, w); err != nil {
			return err
		}
	}
	if err := c.confirmStepBack(ctx, t, works, w, o.binding); err != nil {
		return err
	}
	synced := make([]*placementv1.Work, 0, len(w.works))
	for i := range w.works {
		work, problem, err := c.syncOne(ctx, t, works[w.works[i].Name], w, i)
		if err != nil || problem != nil {
			o.problem = problem
			return err
		}
		synced = append(synced, work)
	}
	o.works = synced
	if o.binding.BindingSpec().State == placementv1.BindingStateUnscheduled {
		return nil
	}
	return c.removeSurplus(ctx, t, works, w)
}

// wish tells what the Works are to be. A snapshot that does not exist any more is no problem where they have it already.
func (c *Controller) wish(ctx context.Context, t render.Target, works map[string]*placementv1.Work, master string, cluster *schedule.Cluster) (*wish, *problem, error) {
	r, err := c.revision(ctx, t, master)
	var policies policy.Set
	if err == nil {
		policies, err = c.policies(ctx, t, r, cluster)
		t.Policies = policies.Key()
	}
	if err == nil {
		w := &wish{policies: policies, index: r.Index, works: render.Works(t, r.Revision), envelopes: make([]string, len(r.Parts))}
		w.parts, w.uids = slices.Clone(r.Parts), slices.Clone(r.uids)
		for _, e := range r.Envelopes {
			w.parts, w.uids, w.envelopes = append(w.parts, r.Parts[e.Part]), append(w.uids, r.uids[e.Part]), append(w.envelopes, e.ID)
		}
		return w, nil, nil
	}
	if !isMissing(err) {
		return nil, nil, err
	}
	have := carried(t, works, master)
	if have == nil {
		return nil, failure("%v; roll out a snapshot that does", err), nil
	}
	return &wish{index: have[0].Labels[placementv1.LabelParentSnapshotIndex], works: withStrategy(t, have)}, nil, nil
}

// withStrategy are Works as they are to be, but for what they have of a snapshot that does not exist any more.
func withStrategy(t render.Target, have []*placementv1.Work) []*placementv1.Work {
	wanted := make([]*placementv1.Work, 0, len(have))
	for _, w := range have {
		copied := *w // of the cache, of which only the strategies are replaced
		copied.Spec.ApplyStrategy, copied.Spec.ReportBackStrategy = t.ApplyStrategy, t.ReportBackStrategy
		wanted = append(wanted, &copied)
	}
	return wanted
}

// hindrance is why the Works are left as they are though they are not what is wanted.
func hindrance(t render.Target, works map[string]*placementv1.Work, w *wish, o *observed) *problem {
	same := true
	for _, wanted := range w.works {
		there := works[wanted.Name]
		same = same && there != nil && t.Belongs(there) && there.DeletionTimestamp.IsZero() && render.Same(there, wanted)
	}
	switch {
	case same:
		return nil
	case o.binding.BindingSpec().State == placementv1.BindingStateUnscheduled:
		return waitFor("Cluster %q is not chosen any more: what is there is left as it is until it is removed", t.Cluster)
	case o.binding.BindingSpec().Suspended:
		return waitFor("The policy suspends what is sent to cluster %q: what is there stays as it is; take spec.suspension off the policy, or the cluster out of it, to go on", t.Cluster)
	case o.cluster == nil:
		return waitFor("Cluster %q is not a member any more", t.Cluster)
	case o.cluster.Leaving:
		return waitFor("Cluster %q is leaving the fleet", t.Cluster)
	default:
		return nil
	}
}

// allSame tells whether no Work needs to be written.
func allSame(wanted []*placementv1.Work, works map[string]*placementv1.Work) bool {
	return !slices.ContainsFunc(wanted, func(w *placementv1.Work) bool {
		there := works[w.Name]
		return there == nil || !render.Same(there, w)
	})
}

// confirmStepBack asks the API server whether the binding still says what the cache says, if that would take the cluster
// back to an earlier snapshot. A rollback is what it looks like; a hub that started with a cache of old must not begin one.
func (c *Controller) confirmStepBack(ctx context.Context, t render.Target, works map[string]*placementv1.Work, w *wish, b placementv1.BindingObject) error {
	wanted, err := strconv.Atoi(w.index)
	if err != nil {
		return nil //nolint:nilerr // an index that is no number is not earlier than another
	}
	back := false
	for _, wish := range w.works {
		if there := works[wish.Name]; there != nil {
			index, err := strconv.Atoi(there.Labels[placementv1.LabelParentSnapshotIndex])
			back = back || (err == nil && index > wanted)
		}
	}
	if !back {
		return nil
	}
	if c.follows() {
		return c.confirmLatest(ctx, t, w)
	}
	live := c.Carriage.NewBinding()
	if err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(b), live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read binding %s before going back to an earlier snapshot: %w", b.GetName(), err)
	}
	if live.GetUID() != b.GetUID() || live.GetGeneration() != b.GetGeneration() {
		return errStale
	}
	return nil
}

// syncOne makes one Work what is wanted, or says why it is not.
func (c *Controller) syncOne(ctx context.Context, t render.Target, existing *placementv1.Work, w *wish, i int) (*placementv1.Work, *problem, error) {
	wanted := w.works[i]
	switch {
	case existing == nil:
		if c.made.Has(client.ObjectKeyFromObject(wanted), c.Clock.Now()) {
			return nil, nil, errStale
		}
	case !t.Made(existing): // one that was, and has lost a label, is written anew with it
		if !existing.DeletionTimestamp.IsZero() {
			if err := c.lift(ctx, existing); err != nil {
				return nil, nil, err
			}
		}
		return nil, failure("Work %s/%s is one of an earlier placement, or of another binding; look what it holds, and delete it: "+
			"what it placed stays, and is taken over", existing.Namespace, existing.Name), nil
	case !existing.DeletionTimestamp.IsZero():
		// Somebody deleted it, or its removal was begun and is not wanted any more. It is made again when it is gone.
		if err := c.lift(ctx, existing); err != nil {
			return nil, nil, err
		}
		return nil, waitFor("Work %s/%s is being deleted; it is made again when the agent of cluster %q has answered for it and it is gone",
			existing.Namespace, existing.Name, t.Cluster), nil
	case render.Same(existing, wanted):
		return existing, nil, nil
	}
	if len(w.uids) == 0 {
		return nil, failure("the resource snapshot of Work %s/%s does not exist any more, and the Work is not as the hub wrote it; roll out a snapshot that does",
			wanted.Namespace, wanted.Name), nil
	}
	content, err := c.contents.get(ctx, client.ObjectKey{Namespace: t.Placement.Namespace, Name: w.parts[i]}, w.uids[i])
	if isMissing(err) {
		return nil, failure("%v; roll out a snapshot that does", err), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if problem, err := c.fill(ctx, t, w, i, content); problem != nil || err != nil {
		return nil, problem, err
	}
	written, err := c.write(ctx, existing, wanted)
	if err != nil {
		problem, err := explain(wanted, err)
		return nil, problem, err
	}
	c.Tracker.Wrote(written)
	return written, nil, nil
}

// write creates a Work, or changes the one that exists.
func (c *Controller) write(ctx context.Context, existing, wanted *placementv1.Work) (*placementv1.Work, error) {
	if existing != nil {
		return c.rewrite(ctx, existing, wanted)
	}
	key := client.ObjectKeyFromObject(wanted)
	c.made.Add(key, c.Clock.Now())
	err := c.Client.Create(ctx, wanted)
	if err == nil {
		return wanted, nil
	}
	c.made.Remove(key)
	if apierrors.IsAlreadyExists(err) {
		return c.relabel(ctx, wanted)
	}
	return nil, err
}

// relabel is for a Work that is there though the cache does not list it: it was made just now, or somebody has taken the
// labels off it by which it is found. One that was made for the same placement and cluster is made what is wanted.
func (c *Controller) relabel(ctx context.Context, wanted *placementv1.Work) (*placementv1.Work, error) {
	live := &placementv1.Work{}
	if err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), live); err != nil {
		if apierrors.IsNotFound(err) {
			err = errStale
		}
		return nil, err
	}
	if labels.SelectorFromSet(c.labelsToFind(wanted)).Matches(labels.Set(live.Labels)) {
		return nil, errStale
	}
	binding, labelled := live.Labels[placementv1.LabelParentBinding]
	if labelled && binding != wanted.Labels[placementv1.LabelParentBinding] ||
		live.Annotations[placementv1.AnnotationPlacementUID] != wanted.Annotations[placementv1.AnnotationPlacementUID] {
		return nil, errInTheWay
	}
	return c.rewrite(ctx, live, wanted)
}

// errInTheWay is that a Work of the wanted name is there and is nobody's.
var errInTheWay = errors.New("there is one already that was not made for this placement and cluster, or has lost what tells so: " +
	"look what it holds, and delete it; what it placed stays, and is taken over")

// labelsToFind are the labels by which a binding finds its Works.
func (c *Controller) labelsToFind(w *placementv1.Work) map[string]string {
	return map[string]string{
		c.Carriage.Label:               w.Labels[c.Carriage.Label],
		placementv1.LabelParentBinding: w.Labels[placementv1.LabelParentBinding],
	}
}

// rewrite makes an existing Work what is wanted. Where its generation comes out another one than was to be expected, that is
// corrected: it is the generation of what we wrote as long as nobody has written since.
func (c *Controller) rewrite(ctx context.Context, existing, wanted *placementv1.Work) (*placementv1.Work, error) {
	w := render.Onto(existing, wanted)
	err := c.Client.Update(ctx, w)
	if err == nil && !render.AsWritten(w) {
		before := w.DeepCopy()
		render.MarkWritten(w)
		err = c.Client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if apierrors.IsNotFound(err) {
		return nil, errStale
	}
	return w, err
}

// explain says what a Work that could not be written waits for. With an error it is tried again after a while; without one
// an event will tell.
func explain(w *placementv1.Work, err error) (*problem, error) {
	wrapped := fmt.Errorf("write Work %s/%s: %w", w.Namespace, w.Name, err)
	switch {
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return waitFor("Namespace %s does not exist yet, or is going; the hub makes it for a member", w.Namespace), nil
	case errors.Is(err, errInTheWay):
		return failure("Work %s/%s: %v", w.Namespace, w.Name, err), wrapped
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err), strings.Contains(err.Error(), "request is too large"):
		return failure("Work %s/%s is refused: %s", w.Namespace, w.Name, placement.Quote(err.Error())), wrapped
	default:
		return nil, wrapped
	}
}
