// Package run has the commands on update runs.
package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reasonApproved is the reason of an approval that was given with this command.
const reasonApproved = "ApprovedWithKubectl"

// NewCommand returns the command run.
func NewCommand(o *options.Options) *cobra.Command {
	command := options.Group(&cobra.Command{Use: "run", Short: "Work with update runs"})
	command.AddCommand(newApprove(o), newSkip(o), newRetry(o), newCancel(o))
	return command
}

func newApprove(o *options.Options) *cobra.Command {
	var stage string
	command := &cobra.Command{
		Use:   "approve NAME [-n NAMESPACE] [--stage STAGE]",
		Short: "Let an update run pass the gate that it waits for",
		Example: `  # Approve what ClusterStagedUpdateRun example-run waits for
  kubectl amc run approve example-run

  # Approve the gate of one stage
  kubectl amc run approve example-run --stage canary

  # Approve what StagedUpdateRun example-run in namespace test-namespace waits for
  kubectl amc run approve example-run -n test-namespace`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("give the name of one run, such as `kubectl amc run approve example-run`; got %d names", len(args))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return approve(command.Context(), o, args[0], stage, clock.RealClock{})
		},
		ValidArgsFunction: func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return scopeOf(o).runs(command.Context(), o), cobra.ShellCompDirectiveNoFileComp
		},
	}
	command.Flags().StringVar(&stage, "stage", "", "the stage whose gate to open; needed only where several wait")
	_ = command.RegisterFlagCompletionFunc("stage", func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return openStages(command.Context(), o, args), cobra.ShellCompDirectiveNoFileComp
	})
	return command
}

func approve(ctx context.Context, o *options.Options, name, stage string, clock clock.PassiveClock) error {
	s := scopeOf(o)
	hub, err := o.Hub()
	if err != nil {
		return err
	}
	run, err := s.run(ctx, hub, name)
	if err != nil {
		return err
	}
	if err := checkStage(run, stage); err != nil {
		return err
	}
	request, err := s.approveOpen(ctx, hub, run, stage, clock)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s/%s approved\n", resource(s.kinds.ApprovalRequest), request)
	return nil
}

// checkStage refuses a stage that a planned run does not have.
func checkStage(run placementv1.UpdateRunObject, stage string) error {
	var stages []string
	for i := range run.UpdateRunStatus().StagesStatus {
		stages = append(stages, run.UpdateRunStatus().StagesStatus[i].StageName)
	}
	if stage == "" || len(stages) == 0 || slices.Contains(stages, stage) {
		return nil
	}
	return fmt.Errorf("update run %q has no stage %q; it has: %s", run.GetName(), stage, strings.Join(stages, ", "))
}

// approveOpen approves the one request of a run that waits for it, and returns its name. Where somebody wrote the request
// meanwhile, the hub for example, it looks once more.
func (s scope) approveOpen(ctx context.Context, hub client.Client, run placementv1.UpdateRunObject, stage string, clock clock.PassiveClock) (string, error) {
	request, err := s.approveOnce(ctx, hub, run, stage, clock)
	if apierrors.IsConflict(err) {
		return s.approveOnce(ctx, hub, run, stage, clock)
	}
	return request, err
}

func (s scope) approveOnce(ctx context.Context, hub client.Client, run placementv1.UpdateRunObject, stage string, clock clock.PassiveClock) (string, error) {
	request, err := s.openRequest(ctx, hub, run, stage)
	if err != nil {
		return "", err
	}
	patch, err := approval(request, clock)
	if err != nil {
		return "", err
	}
	if err := hub.Status().Patch(ctx, request, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return "", fmt.Errorf("approve %s %q: %w", s.kinds.ApprovalRequest, request.GetName(), err)
	}
	return request.GetName(), nil
}

// openRequest returns the one request of a run that nobody has approved. One of its name that the run passes over, since it
// was there before, is none.
func (s scope) openRequest(ctx context.Context, hub client.Client, run placementv1.UpdateRunObject, stage string) (placementv1.ApprovalRequestObject, error) {
	requests, err := s.requests(ctx, hub, run.GetName())
	if err != nil {
		return nil, err
	}
	var open, closed []placementv1.ApprovalRequestObject
	var stages []string
	for _, r := range requests {
		spec := r.ApprovalRequestSpec()
		switch {
		case !updaterun.BelongsTo(s.kinds, r, run) || (stage != "" && spec.TargetStage != stage):
		case isOpen(r):
			open = append(open, r)
			stages = append(stages, spec.TargetStage)
		default:
			closed = append(closed, r)
		}
	}
	switch len(open) {
	case 1:
		return open[0], nil
	case 0:
		return nil, errors.New(nothingOpen(run, stage, closed))
	default:
		slices.Sort(stages)
		return nil, fmt.Errorf("update run %q waits for several approvals; say which with --stage: %s", run.GetName(), strings.Join(slices.Compact(stages), ", "))
	}
}

// openStages are the stages of a run that wait for an approval.
func openStages(ctx context.Context, o *options.Options, args []string) []string {
	if len(args) != 1 {
		return nil
	}
	s := scopeOf(o)
	list, ok := s.kinds.NewApprovalRequestList().(client.ObjectList)
	if !ok {
		return nil
	}
	o.Complete(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{placementv1.LabelTargetUpdateRun: args[0]})
	requests, err := requestsIn(list)
	if err != nil {
		return nil
	}
	var stages []string
	for _, r := range requests {
		if isOpen(r) {
			stages = append(stages, r.ApprovalRequestSpec().TargetStage)
		}
	}
	slices.Sort(stages)
	return slices.Compact(stages)
}

// isOpen tells whether a request waits for somebody: nobody has approved it as it is, and its run has not ended. That it was
// accepted without having been approved somebody wrote by hand: to the run it means nothing.
func isOpen(r placementv1.ApprovalRequestObject) bool {
	return !meta.IsStatusConditionFalse(r.ApprovalRequestStatus().Conditions, placementv1.ConditionApprovalAccepted) && !isApproved(r)
}

// isApproved tells whether a request was approved in the generation that it has. An approval of another does not count.
func isApproved(r placementv1.ApprovalRequestObject) bool {
	c := meta.FindStatusCondition(r.ApprovalRequestStatus().Conditions, placementv1.ConditionApproved)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == r.GetGeneration()
}

// approval is a patch of a request's status that approves it as it is.
func approval(request placementv1.ApprovalRequestObject, clock clock.PassiveClock) ([]byte, error) {
	conditions := slices.Clone(request.ApprovalRequestStatus().Conditions)
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: placementv1.ConditionApproved, Status: metav1.ConditionTrue, Reason: reasonApproved, Message: "Approved with kubectl amc run approve",
		ObservedGeneration: request.GetGeneration(), LastTransitionTime: metav1.NewTime(clock.Now()),
	})
	// The version keeps an approval from being given to another request of the same name than the one that was looked at.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": request.GetUID(), "resourceVersion": request.GetResourceVersion()},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the approval: %w", err)
	}
	return patch, nil
}
