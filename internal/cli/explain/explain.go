// Package explain has the commands that say why things are as they are.
package explain

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewCommand returns the command explain.
func NewCommand(o *options.Options) *cobra.Command {
	command := options.Group(&cobra.Command{Use: "explain", Short: "Say why things are as they are"})
	command.AddCommand(newPlacement(o))
	return command
}

func newPlacement(o *options.Options) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "placement NAME [-n NAMESPACE] | -f FILE",
		Short: "Say for every cluster whether a placement chooses it, and why",
		Long: `Say for every cluster whether a placement chooses it, and why. The answer is the scheduler's own, on the fleet as it is now. With
--filename it is about a placement as a file has it, which need not have been applied: what is placed already under its name counts.`,
		Example: `  # Why ClusterResourcePlacement web has the clusters that it has
  kubectl amc explain placement web

  # The same of ResourcePlacement web in namespace shop
  kubectl amc explain placement web -n shop

  # What a placement would choose, before it is applied
  kubectl amc explain placement -f placement.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || (len(args) == 1) == (file != "") {
				return errors.New("give the name of one placement, or one file with -f, such as `kubectl amc explain placement web`")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			if file != "" {
				return explainFile(command.Context(), o, file)
			}
			return explainPlacement(command.Context(), o, args[0])
		},
		ValidArgsFunction: func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			list, ok := kindsOf(o.Namespace()).NewPlacementList().(client.ObjectList)
			if len(args) > 0 || !ok {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return o.Complete(command.Context(), list, client.InNamespace(o.Namespace())), cobra.ShellCompDirectiveNoFileComp
		},
	}
	command.Flags().StringVarP(&file, "filename", "f", "", "a file with the placement, or - for what comes from standard input")
	return command
}

func kindsOf(namespace string) *placement.Kinds {
	if namespace != "" {
		return placement.NamespacedKinds()
	}
	return placement.ClusterKinds()
}

func explainPlacement(ctx context.Context, o *options.Options, name string) error {
	hub, err := o.Hub()
	if err != nil {
		return err
	}
	kinds := kindsOf(o.Namespace())
	p := kinds.NewPlacement()
	err = hub.Get(ctx, client.ObjectKey{Namespace: o.Namespace(), Name: name}, p)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no %s; %s", title(kinds, o.Namespace(), name), howToList(o.Namespace()))
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", title(kinds, o.Namespace(), name), options.Explain(err))
	}
	return explain(ctx, o, hub, kinds, p, p)
}

func howToList(namespace string) string {
	if namespace == "" {
		return "`kubectl get clusterresourceplacements` lists them, and -n NAMESPACE is for a ResourcePlacement"
	}
	return fmt.Sprintf("`kubectl get resourceplacements -n %s` lists them", namespace)
}

func title(kinds *placement.Kinds, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return fmt.Sprintf("%s %q", kinds.Placement, name)
}

// explain prints what is decided for a placement. There is the one that is on the hub under its name, if any.
func explain(ctx context.Context, o *options.Options, hub client.Client, kinds *placement.Kinds, p, there placementv1.PlacementObject) error {
	var members clusterv1.MemberClusterList
	if err := hub.List(ctx, &members); err != nil {
		return fmt.Errorf("list the members of the fleet: %w", options.Explain(err))
	}
	fleet := schedule.NewFleet(schedule.ObserveAll(members.Items))
	policy := p.PlacementSpec().Policy
	request := schedule.Request{Policy: policy, Namespace: p.GetNamespace()}
	if policy.Type() == placementv1.PickNPlacementType {
		request.Number = int(ptr.Deref(policy.NumberOfClusters, 0))
	}
	if there != nil {
		holders, err := holdersOf(ctx, hub, kinds, p, there, fleet)
		if err != nil {
			return err
		}
		request.Holders = holders
	}
	explanations, result, err := schedule.Explain(request, fleet)
	if err != nil {
		return fmt.Errorf("%s: %w", title(kinds, p.GetNamespace(), p.GetName()), err)
	}
	printExplanations(o.Out, title(kinds, p.GetNamespace(), p.GetName()), &request, explanations, &result)
	return nil
}

// holdersOf are the clusters that hold the placement which is there. They were chosen under the policy as it is now if that is
// the one of the latest policy snapshot.
func holdersOf(ctx context.Context, hub client.Client, kinds *placement.Kinds, p, there placementv1.PlacementObject, fleet schedule.Fleet) (map[string]schedule.Holder, error) {
	key := client.ObjectKeyFromObject(there)
	snapshots, err := listOf[placementv1.PolicySnapshotObject](ctx, hub, kinds.PolicySnapshot, kinds.NewPolicySnapshotList(), key)
	if err != nil {
		return nil, err
	}
	bindings, err := listOf[placementv1.BindingObject](ctx, hub, kinds.Binding, kinds.NewBindingList(), key)
	if err != nil {
		return nil, err
	}
	owner := schedule.Owner{Key: key, UID: there.GetUID(), Created: there.GetCreationTimestamp()}
	latest := -1
	for _, s := range snapshots {
		index, err := strconv.Atoi(s.GetLabels()[placementv1.LabelPolicyIndex])
		if err != nil || index <= latest || s.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(there.GetUID()) {
			continue
		}
		latest, owner.PolicySnapshot = index, ""
		if samePolicy(s.PolicySnapshotSpec().Policy, p.PlacementSpec().Policy) {
			owner.PolicySnapshot = s.GetName()
		}
	}
	return owner.Holders(fleet, bindings), nil
}

// samePolicy tells whether two policies differ in nothing but the number of clusters.
func samePolicy(a, b *placementv1.PlacementPolicy) bool {
	if a == nil || b == nil {
		return a == b
	}
	one, other := a.DeepCopy(), b.DeepCopy()
	one.NumberOfClusters, other.NumberOfClusters = nil, nil
	return equality.Semantic.DeepEqual(one, other)
}

// listOf lists what belongs to a placement.
func listOf[T any](ctx context.Context, hub client.Client, kind string, empty runtime.Object, key placement.Key) ([]T, error) {
	list, ok := empty.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("list %s objects: %T is no list", kind, empty)
	}
	err := hub.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{placementv1.LabelParentPlacement: key.Name})
	if err != nil {
		return nil, fmt.Errorf("list the %s objects of placement %q: %w", kind, key.Name, options.Explain(err))
	}
	var all []T
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if t, ok := item.(T); ok {
			all = append(all, t)
		}
		return nil
	})
	return all, err
}
