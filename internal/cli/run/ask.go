package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// longestReason is how many characters a reason may have, as the API has it.
const longestReason = 200

// verb is what a command asks of a run about one of its clusters.
type verb struct {
	name, short, example string
	action               placementv1.ClusterActionType
	// done is how the command says that the run does it.
	done string
}

func newSkip(o *options.Options) *cobra.Command {
	return newAsk(o, verb{
		name: "skip", action: placementv1.ClusterActionSkip, done: "skipped",
		short: "Have an update run go on without a cluster",
		example: `  # Go on without member2: one that was started keeps what it was given, any other stays as it is
  kubectl amc run skip example-run member2 --reason "its disk is being replaced"

  # The same for StagedUpdateRun example-run in namespace test-namespace
  kubectl amc run skip example-run member2 -n test-namespace`,
	})
}

func newRetry(o *options.Options) *cobra.Command {
	return newAsk(o, verb{
		name: "retry", action: placementv1.ClusterActionRetry, done: "is started again",
		short: "Have an update run start a cluster again that has failed or was skipped",
		example: `  # Start member2 again, on the very snapshot that the run rolls out, though others may be newer
  kubectl amc run retry example-run member2 --reason "its disk was replaced"`,
	})
}

func newAsk(o *options.Options, v verb) *cobra.Command {
	var reason string
	command := &cobra.Command{
		Use:     v.name + " RUN CLUSTER [--reason TEXT] [-n NAMESPACE]",
		Short:   v.short,
		Example: v.example,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("give a run and one of its clusters, such as `kubectl amc run %s example-run member2`; got %d names", v.name, len(args))
			}
			return checkReason(reason)
		},
		RunE: func(command *cobra.Command, args []string) error {
			return ask(command.Context(), o, v, args[0], args[1], reason)
		},
		ValidArgsFunction: func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return scopeOf(o).runs(command.Context(), o), cobra.ShellCompDirectiveNoFileComp
			case 1:
				return scopeOf(o).askable(command.Context(), o, args[0], v.action), cobra.ShellCompDirectiveNoFileComp
			default:
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "why, for whoever looks at the run later; at most 200 characters")
	return command
}

func checkReason(reason string) error {
	if n := utf8.RuneCountInString(reason); n > longestReason {
		return fmt.Errorf("--reason may have at most %d characters, and has %d", longestReason, n)
	}
	return nil
}

// ask asks a run about a cluster and waits until the hub has answered. What the run's status tells already to be in vain is
// not asked.
func ask(ctx context.Context, o *options.Options, v verb, name, cluster, reason string) error {
	s := scopeOf(o)
	hub, err := o.HubWithWatch()
	if err != nil {
		return err
	}
	action := placementv1.ClusterAction{Cluster: cluster, Action: v.action, Reason: reason}
	var run placementv1.UpdateRunObject
	entry := 0
	err = s.change(ctx, hub, name, &run, func() error {
		if why := inVain(run, &action); why != "" {
			return fmt.Errorf("cannot %s cluster %q in update run %q: %s", v.name, cluster, name, why)
		}
		entry = len(run.UpdateRunSpec().ClusterActions)
		run.UpdateRunSpec().ClusterActions = append(run.UpdateRunSpec().ClusterActions, action)
		return nil
	})
	if err != nil {
		return err
	}
	if run.UpdateRunStatus().StartedTime == nil {
		fmt.Fprintf(o.Out, "%s/%s cluster %s: to %s is on record, and heeded when the run starts\n", resource(s.kinds.UpdateRun), name, cluster, v.name)
		return nil
	}
	if err := awaitRun(ctx, hub, run, func() bool { return len(run.UpdateRunStatus().ClusterActions) > entry }); err != nil {
		return err
	}
	answer := run.UpdateRunStatus().ClusterActions[entry]
	if answer.Result == placementv1.ClusterActionRefused {
		return fmt.Errorf("cannot %s cluster %q in update run %q: %s", v.name, cluster, name, answer.Message)
	}
	text := fmt.Sprintf("%s/%s cluster %s %s", resource(s.kinds.UpdateRun), name, cluster, v.done)
	if c := meta.FindStatusCondition(run.UpdateRunStatus().Conditions, placementv1.ConditionSucceeded); c != nil && c.Status == "False" {
		text += "; the run has still ended: " + c.Message
	}
	fmt.Fprintln(o.Out, text)
	return nil
}

// inVain says why a run cannot do what is to be asked; empty where it may.
func inVain(run placementv1.UpdateRunObject, action *placementv1.ClusterAction) string {
	status := run.UpdateRunStatus()
	if why := engine.Final(status); why != "" {
		return why
	}
	if why := engine.Refusal(status, action); why != "" {
		if names := clustersOf(status); !strings.Contains(why, "none of the clusters") || len(names) == 0 || len(names) > 20 {
			return why
		}
		return why + ", which are: " + strings.Join(clustersOf(status), ", ")
	}
	if len(run.UpdateRunSpec().ClusterActions) >= 200 {
		return "it was asked 200 things already, which is all that it keeps; create a new run"
	}
	return ""
}

func clustersOf(status *placementv1.UpdateRunStatus) (names []string) {
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			names = append(names, status.StagesStatus[i].Clusters[j].ClusterName)
		}
	}
	return names
}

// askable are the clusters of a run for which something can be asked, while their names are typed.
func (s scope) askable(ctx context.Context, o *options.Options, name string, action placementv1.ClusterActionType) (names []string) {
	hub, err := o.Hub()
	if err != nil {
		return nil
	}
	run, err := s.run(ctx, hub, name)
	if err != nil {
		return nil
	}
	for _, cluster := range clustersOf(run.UpdateRunStatus()) {
		if inVain(run, &placementv1.ClusterAction{Cluster: cluster, Action: action}) == "" {
			names = append(names, cluster)
		}
	}
	return names
}

// change changes a run as it is now; where somebody else writes it meanwhile, as it is then.
func (s scope) change(ctx context.Context, hub client.Client, name string, run *placementv1.UpdateRunObject, how func() error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		read, err := s.run(ctx, hub, name)
		if err != nil {
			return err
		}
		before, ok := read.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("copy of update run %q is no object", name)
		}
		*run = read
		if err := how(); err != nil {
			return err
		}
		if err := hub.Patch(ctx, read, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("change %s %q: %w", s.kinds.UpdateRun, name, err)
		}
		return nil
	})
}

var errGone = errors.New("the run was deleted meanwhile")
