// Package drain has the commands that empty a member and let it be used again.
package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/await"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultTimeout is how long the hub is given to answer for the evictions.
const defaultTimeout = 5 * time.Minute

// NewCommand returns the command drain.
func NewCommand(o *options.Options) *cobra.Command {
	timeout := defaultTimeout
	command := &cobra.Command{
		Use:   "drain MEMBER",
		Short: "Take from a member what placements have placed there, and keep them from choosing it again",
		Long: "Taints a member, so that no placement chooses it anew, and evicts every ClusterResourcePlacement from it, as far as their\n" +
			"ClusterResourcePlacementDisruptionBudgets allow. It ends with exit code 1 where something is blocked, and says what blocks it;\n" +
			"the taint stays, and the command can be repeated.",
		Example: `  # Empty member2, for maintenance
  kubectl amc drain member2

  # And use it again
  kubectl amc uncordon member2`,
		Args:              oneMember("drain"),
		ValidArgsFunction: o.CompleteMember,
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), timeout)
			defer cancel()
			return drain(ctx, o, args[0])
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait for the hub's answers, such as 90s")
	return command
}

func drain(ctx context.Context, o *options.Options, member string) error {
	hub, err := o.HubWithWatch()
	if err != nil {
		return err
	}
	changed, err := setTaint(ctx, hub, member, true)
	if err != nil {
		return err
	}
	tell(o, member, changed, "cordoned", "already cordoned")
	placements, others, err := placedOn(ctx, hub, member)
	if err != nil {
		return err
	}
	var blocked []string
	for _, other := range others {
		fmt.Fprintf(o.Out, "resourceplacement.%s/%s not evicted from %s: only ClusterResourcePlacements can be evicted; change its policy so that it does not choose the member\n",
			placementv1.GroupVersion.Group, other, member)
		blocked = append(blocked, "ResourcePlacement "+other)
	}
	evictions, err := evict(ctx, hub, member, placements)
	if err != nil {
		return err
	}
	for _, e := range evictions {
		condition, err := awaitAnswer(ctx, hub, e)
		if err != nil {
			return err
		}
		// It has said what it had to say, and the placement's events keep it: draining again and again must not pile them up.
		if err := client.IgnoreNotFound(hub.Delete(ctx, e)); err != nil {
			return fmt.Errorf("delete ClusterResourcePlacementEviction %q, which is dealt with: %w", e.Name, options.Explain(err))
		}
		evicted := condition.Type == placementv1.ConditionExecuted && condition.Status == metav1.ConditionTrue
		word := "evicted"
		if !evicted {
			word = "not evicted"
			blocked = append(blocked, "ClusterResourcePlacement "+e.Spec.PlacementName)
		}
		fmt.Fprintf(o.Out, "clusterresourceplacement.%s/%s %s from %s: %s\n", placementv1.GroupVersion.Group, e.Spec.PlacementName, word, member, condition.Message)
	}
	if len(blocked) > 0 {
		return fmt.Errorf("member %q is not drained; blocked: %s", member, strings.Join(blocked, ", "))
	}
	tell(o, member, true, "drained", "")
	return nil
}

// placedOn returns the ClusterResourcePlacements that have a binding to a member, and the ResourcePlacements, as
// namespace/name.
func placedOn(ctx context.Context, hub client.Client, member string) (placements, others []string, err error) {
	var bindings placementv1.ClusterResourceBindingList
	if err := hub.List(ctx, &bindings); err != nil {
		return nil, nil, fmt.Errorf("list ClusterResourceBindings, which tell what is placed on member %q: %w", member, options.Explain(err))
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Spec.TargetCluster == member && holds(b) {
			placements = append(placements, b.Labels[placementv1.LabelParentPlacement])
		}
	}
	var namespaced placementv1.ResourceBindingList
	if err := hub.List(ctx, &namespaced); err != nil {
		return nil, nil, fmt.Errorf("list ResourceBindings, which tell what is placed on member %q: %w", member, options.Explain(err))
	}
	for i := range namespaced.Items {
		if b := &namespaced.Items[i]; b.Spec.TargetCluster == member && holds(b) {
			others = append(others, b.Namespace+"/"+b.Labels[placementv1.LabelParentPlacement])
		}
	}
	slices.Sort(placements)
	slices.Sort(others)
	return slices.Compact(placements), slices.Compact(others), nil
}

// holds tells whether a binding's cluster is to keep what was placed there.
func holds(b placementv1.BindingObject) bool {
	return b.GetDeletionTimestamp().IsZero() && b.BindingSpec().State != placementv1.BindingStateUnscheduled
}

// evict asks the hub to evict placements from a member.
func evict(ctx context.Context, hub client.Client, member string, placements []string) ([]*placementv1.ClusterResourcePlacementEviction, error) {
	var evictions []*placementv1.ClusterResourcePlacementEviction
	for _, name := range placements {
		e := &placementv1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{GenerateName: "drain-" + member + "-"}}
		e.Spec = placementv1.PlacementEvictionSpec{PlacementName: name, ClusterName: member}
		if err := hub.Create(ctx, e); err != nil {
			return nil, fmt.Errorf("create a ClusterResourcePlacementEviction of %q from member %q: %w", name, member, options.Explain(err))
		}
		evictions = append(evictions, e)
	}
	return evictions, nil
}

// answer is the condition that says how an eviction ended; nil while it has not.
func answer(e *placementv1.ClusterResourcePlacementEviction) *metav1.Condition {
	if c := meta.FindStatusCondition(e.Status.Conditions, placementv1.ConditionValid); c != nil && c.Status == metav1.ConditionFalse {
		return c
	}
	return meta.FindStatusCondition(e.Status.Conditions, placementv1.ConditionExecuted)
}

// awaitAnswer waits until the hub has dealt with an eviction.
func awaitAnswer(ctx context.Context, hub client.WithWatch, e *placementv1.ClusterResourcePlacementEviction) (*metav1.Condition, error) {
	err := await.Object(ctx, hub, e, func(exists bool) (bool, error) {
		if !exists {
			return false, errors.New("somebody deleted ClusterResourcePlacementEviction " + e.Name + " before the hub had dealt with it")
		}
		return answer(e) != nil, nil
	})
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("the hub has not dealt with ClusterResourcePlacementEviction %q: %w; is it running?", e.Name, ctx.Err())
	}
	return answer(e), err
}
