// Package member has the commands on members of the fleet.
package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCommand returns the command member.
func NewCommand(o *options.Options) *cobra.Command {
	command := options.Group(&cobra.Command{Use: "member", Short: "Work with the members of the fleet"})
	command.AddCommand(newUpdate(o))
	return command
}

func newUpdate(o *options.Options) *cobra.Command {
	var name string
	var labels []string
	command := &cobra.Command{
		Use:   "update MEMBER --labels KEY=VALUE,...",
		Short: "Change the labels of a member, by which placements and stages choose it",
		Example: `  # Put member2 into the staging environment; its other labels stay
  kubectl amc member update member2 --labels environment=staging

  # Set one label and remove another
  kubectl amc member update --name member2 --labels order=1,environment-`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1 && name != "" && name != args[0]) {
				return errors.New("give one member; to label several, call the command once for each")
			}
			return nil
		},
		ValidArgsFunction: o.CompleteMember,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				name = args[0]
			}
			return update(command.Context(), o, name, labels)
		},
	}
	command.Flags().StringVar(&name, "name", "", "the member, in place of the argument")
	command.Flags().StringSliceVar(&labels, "labels", nil, "labels to set, KEY=VALUE, or to remove, KEY-; several separated by commas (required)")
	_ = command.RegisterFlagCompletionFunc("name", o.CompleteMemberFlag)
	return command
}

func update(ctx context.Context, o *options.Options, name string, labels []string) error {
	if name == "" || len(labels) == 0 {
		return errors.New("a member and --labels are required, such as `kubectl amc member update member2 --labels environment=staging`")
	}
	changes, err := parse(labels)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": changes}})
	if err != nil {
		return fmt.Errorf("encode the labels: %w", err)
	}
	hub, err := o.Hub()
	if err != nil {
		return err
	}
	cluster := &clusterv1.MemberCluster{}
	cluster.Name = name
	err = hub.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no member %q on this hub; `kubectl get memberclusters` lists them", name)
	}
	if err != nil {
		return fmt.Errorf("change the labels of member %q: %w", name, options.Explain(err))
	}
	done := "unlabeled"
	for _, value := range changes {
		if value != nil {
			done = "labeled"
		}
	}
	fmt.Fprintf(o.Out, "membercluster.%s/%s %s\n", clusterv1.GroupVersion.Group, name, done)
	return nil
}

// parse returns the value for each label; nil removes it.
func parse(labels []string) (map[string]*string, error) {
	changes := map[string]*string{}
	for _, label := range labels {
		key, value, sets := strings.Cut(label, "=")
		if !sets {
			var removes bool
			if key, removes = strings.CutSuffix(label, "-"); !removes {
				return nil, fmt.Errorf("--labels: %q is neither KEY=VALUE nor KEY-", label)
			}
		}
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return nil, fmt.Errorf("--labels: %q is no key of a label: %s", key, strings.Join(problems, "; "))
		}
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return nil, fmt.Errorf("--labels: %q is no value of a label: %s", value, strings.Join(problems, "; "))
		}
		if _, twice := changes[key]; twice {
			return nil, fmt.Errorf("--labels: %q is given twice", key)
		}
		changes[key] = nil
		if sets {
			changes[key] = &value
		}
	}
	return changes, nil
}
