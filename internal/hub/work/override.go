package work

import (
	"context"
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/override"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fill puts into a Work what a part of the snapshot has for the cluster.
func (c *Controller) fill(ctx context.Context, t render.Target, w *wish, i int, content []placementv1.ResourceContent) (*problem, error) {
	wanted := w.works[i]
	content = render.Unwrap(wanted, w.envelopes[i], content, c.Rules)
	content, err := render.Revise(content, t.Replicas)
	if err != nil {
		return failure("Work %s/%s: %v", wanted.Namespace, wanted.Name, err), nil
	}
	if !w.policies.Empty() && w.envelopes[i] == "" {
		return nil, c.applyPolicies(ctx, w, wanted, content)
	}
	if t.Overrides.Empty() {
		render.Fill(wanted, content)
		return nil, nil //nolint:nilnil // no problem
	}
	snapshots, err := c.overrides(ctx, t.Overrides)
	if isMissing(err) {
		return failedOverride("%v; roll out the placement again, and the cluster gets the overrides as they are now", err), nil
	}
	if err != nil {
		return nil, err
	}
	manifests, failures, held, err := render.Override(content, snapshots, t.Overrides.Cluster(t.Cluster), func(id placementv1.ResourceIdentifier) ([]byte, error) {
		return c.previous(ctx, w, id)
	})
	if err != nil {
		return nil, err
	}
	render.Fill(wanted, manifests)
	render.FailOverrides(wanted, failures, held)
	return nil, nil //nolint:nilnil // no problem
}

// overrides reads the snapshots of the overrides that a binding names, in the order in which they are applied.
func (c *Controller) overrides(ctx context.Context, a override.Applied) ([]placementv1.OverrideSnapshotObject, error) {
	var all []placementv1.OverrideSnapshotObject
	read := func(key client.ObjectKey, s placementv1.OverrideSnapshotObject) error {
		err := c.Client.Get(ctx, key, s)
		if apierrors.IsNotFound(err) { // the binding may have travelled faster
			err = c.APIReader.Get(ctx, key, s)
		}
		if apierrors.IsNotFound(err) {
			return &missingError{what: "override snapshot", snapshot: strings.TrimPrefix(key.String(), "/")}
		}
		if err != nil {
			return fmt.Errorf("read override snapshot %s: %w", key, err)
		}
		all = append(all, s)
		return nil
	}
	for _, name := range a.ClusterResourceOverrideSnapshots {
		if err := read(client.ObjectKey{Name: name}, &placementv1.ClusterResourceOverrideSnapshot{}); err != nil {
			return nil, err
		}
	}
	for _, name := range a.ResourceOverrideSnapshots {
		if err := read(client.ObjectKey{Namespace: name.Namespace, Name: name.Name}, &placementv1.ResourceOverrideSnapshot{}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// previous finds the manifest of an object in the Works as they were. They are read live, once, when it is needed.
func (c *Controller) previous(ctx context.Context, w *wish, id placementv1.ResourceIdentifier) ([]byte, error) {
	if w.before == nil {
		if err := c.readBefore(ctx, w); err != nil {
			return nil, err
		}
	}
	id.Version = ""
	return w.before[id], nil
}

// readBefore reads what the Works have before any of them is written: an object may be on its way from one to another.
func (c *Controller) readBefore(ctx context.Context, w *wish) error {
	before := map[placementv1.ResourceIdentifier][]byte{}
	for _, there := range w.there {
		live := &placementv1.Work{}
		err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(there), live)
		if apierrors.IsNotFound(err) || (err == nil && live.UID != there.UID) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read Work %s/%s for what cannot be overridden: %w", there.Namespace, there.Name, err)
		}
		for i := range live.Spec.Workload.Manifests {
			raw := live.Spec.Workload.Manifests[i].Raw
			if known, err := render.Identify(raw); err == nil {
				known.Version = ""
				before[known] = raw
			}
		}
	}
	w.before = before
	return nil
}

// failedOverride is a problem with overrides that keeps all of a Work from being written.
func failedOverride(format string, args ...any) *problem {
	p := failure(format, args...)
	p.override = true
	return p
}

// setOverridden tells what became of the overrides, and whether all went well.
func setOverridden(w conditionWriter, o observed) bool {
	const failed = "Failed to apply the override rules on the resources: "
	var problems []string
	for _, work := range o.works {
		for _, failed := range render.FailedOverridesOf(work) {
			problems = append(problems, failed.Message)
		}
	}
	status, reason := metav1.ConditionTrue, placementv1.ReasonOverriddenSucceeded
	message := "Successfully applied the override rules on the resources"
	switch {
	case o.problem != nil && o.problem.override:
		status, reason, message = metav1.ConditionFalse, placementv1.ReasonOverriddenFailed, o.problem.message
	case len(problems) > 0:
		status, reason = metav1.ConditionFalse, placementv1.ReasonOverriddenFailed
		message = failed + placement.Quote(strings.Join(problems, "; ")) + "; these objects are left in the cluster as they were, and all others are up to date"
	case override.AppliedTo(o.binding).Empty() && !o.overridden:
		reason, message = placementv1.ReasonNoOverrideSpecified, "No override rules are configured for the selected resources"
	}
	w.set(placementv1.ConditionOverridden, status, reason, message)
	return status == metav1.ConditionTrue
}
