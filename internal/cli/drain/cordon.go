package drain

import (
	"context"
	"fmt"
	"slices"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cordon is the taint that keeps placements off a member that is drained.
var cordon = clusterv1.Taint{Key: "cordon-key", Value: "cordon-value", Effect: clusterv1.TaintNoSchedule}

// NewUncordon returns the command uncordon.
func NewUncordon(o *options.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "uncordon MEMBER",
		Short: "Let placements choose a member again that was drained",
		Example: `  # Let member2 be chosen again
  kubectl amc uncordon member2`,
		Args:              oneMember("uncordon"),
		ValidArgsFunction: o.CompleteMember,
		RunE: func(command *cobra.Command, args []string) error {
			hub, err := o.Hub()
			if err != nil {
				return err
			}
			changed, err := setTaint(command.Context(), hub, args[0], false)
			if err != nil {
				return err
			}
			tell(o, args[0], changed, "uncordoned", "not cordoned")
			return nil
		},
	}
}

func oneMember(verb string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("give one member, such as `kubectl amc %s member2`; got %d names", verb, len(args))
		}
		return nil
	}
}

// tell says what became of a member.
func tell(o *options.Options, name string, changed bool, done, already string) {
	text := done
	if !changed {
		text = already
	}
	fmt.Fprintf(o.Out, "membercluster.%s/%s %s\n", clusterv1.GroupVersion.Group, name, text)
}

// setTaint puts the taint on a member, or takes it off, and tells whether that changed anything. Other taints stay.
func setTaint(ctx context.Context, hub client.Client, name string, on bool) (changed bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		m := &clusterv1.MemberCluster{}
		if err := hub.Get(ctx, client.ObjectKey{Name: name}, m); err != nil {
			return err
		}
		before := m.DeepCopy()
		m.Spec.Taints = slices.DeleteFunc(m.Spec.Taints, func(t clusterv1.Taint) bool { return t.Key == cordon.Key && t.Effect == cordon.Effect })
		if on {
			m.Spec.Taints = append(m.Spec.Taints, cordon)
		}
		if changed = len(before.Spec.Taints) != len(m.Spec.Taints) || (on && !slices.Contains(before.Spec.Taints, cordon)); !changed {
			return nil
		}
		return hub.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if apierrors.IsNotFound(err) {
		return false, fmt.Errorf("there is no member %q on this hub; `kubectl get memberclusters` lists them", name)
	}
	if err != nil {
		return false, fmt.Errorf("change the taints of member %q: %w", name, options.Explain(err))
	}
	return changed, nil
}
