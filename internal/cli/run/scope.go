package run

import (
	"context"
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scope is where a command looks for update runs: among the cluster-scoped ones, or in a namespace.
type scope struct {
	kinds     *placement.Kinds
	namespace string
}

// scopeOf is the scope that --namespace says. The namespace of kubectl's context does not count: most contexts have one, and
// most runs are in none.
func scopeOf(o *options.Options) scope {
	if ns := o.Namespace(); ns != "" {
		return scope{kinds: placement.NamespacedKinds(), namespace: ns}
	}
	return scope{kinds: placement.ClusterKinds()}
}

// run reads an update run. That there is none is said with what to do about it.
func (s scope) run(ctx context.Context, hub client.Reader, name string) (placementv1.UpdateRunObject, error) {
	run := s.kinds.NewUpdateRun()
	switch err := hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, run); {
	case err == nil:
		return run, nil
	case apierrors.IsNotFound(err) && s.kinds.Namespaced:
		return nil, fmt.Errorf("there is no %s %q in namespace %q; `kubectl get stagedupdateruns -n %s` lists them, and without -n a ClusterStagedUpdateRun is meant",
			s.kinds.UpdateRun, name, s.namespace, s.namespace)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s %q; `kubectl get clusterstagedupdateruns` lists them, and with -n NAMESPACE a StagedUpdateRun is meant",
			s.kinds.UpdateRun, name)
	default:
		return nil, fmt.Errorf("read %s %q: %w", s.kinds.UpdateRun, name, options.Explain(err))
	}
}

// requests lists the approval requests of a run.
func (s scope) requests(ctx context.Context, hub client.Reader, run string) ([]placementv1.ApprovalRequestObject, error) {
	list, ok := s.kinds.NewApprovalRequestList().(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("the list of %s objects is none", s.kinds.ApprovalRequest)
	}
	if err := hub.List(ctx, list, client.InNamespace(s.namespace), client.MatchingLabels{placementv1.LabelTargetUpdateRun: run}); err != nil {
		return nil, fmt.Errorf("list the approval requests of update run %q: %w", run, err)
	}
	return requestsIn(list)
}

func requestsIn(list runtime.Object) ([]placementv1.ApprovalRequestObject, error) {
	var all []placementv1.ApprovalRequestObject
	err := meta.EachListItem(list, func(object runtime.Object) error {
		request, ok := object.(placementv1.ApprovalRequestObject)
		if !ok {
			return fmt.Errorf("a list of approval requests holds a %T", object)
		}
		all = append(all, request)
		return nil
	})
	return all, err
}

// runs are the names of runs that may be meant, while they are typed.
func (s scope) runs(ctx context.Context, o *options.Options) []string {
	list, ok := s.kinds.NewUpdateRunList().(client.ObjectList)
	if !ok {
		return nil
	}
	return o.Complete(ctx, list, client.InNamespace(s.namespace))
}

// resource is how kubectl names a kind in what it prints.
func resource(kind string) string {
	return strings.ToLower(kind) + "." + placementv1.GroupVersion.Group
}
