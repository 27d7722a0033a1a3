package placement

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// obstacleRetry is when to look again whether an object that is in the way is gone. Nothing tells of its going, since it
// does not carry the placement's label.
const obstacleRetry = 15 * time.Second

// obstacleError says that an object which is not the placement's has the name that one of its objects is to have.
type obstacleError struct{ message string }

func (e *obstacleError) Error() string { return e.message }

// obstacle is what the status says of an object that is in the way; nil if err is something else.
func obstacle(err error) *rollup.Problem {
	var found *obstacleError
	if !errors.As(err, &found) {
		return nil
	}
	return &rollup.Problem{
		Status: metav1.ConditionUnknown, Reason: placementv1.ReasonSchedulePending,
		Message: "Scheduling waits, and nothing changes in the clusters: " + found.message,
	}
}

// reclaim looks live at the object that has a policy snapshot's name though the cache does not show it as the placement's.
// One that is the placement's, and from which somebody took what it is known by, gets that back. Unless something else is
// in the way, errBehind is returned: the cache is about to show the snapshot.
func (c *Controller) reclaim(ctx context.Context, p placementv1.PlacementObject, wanted placementv1.PolicySnapshotObject) error {
	there := c.Kinds.NewPolicySnapshot()
	switch err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), there); {
	case apierrors.IsNotFound(err):
		return errBehind
	case err != nil:
		return fmt.Errorf("read %s %s, which exists already: %w", c.Kinds.PolicySnapshot, wanted.GetName(), err)
	}
	what := c.Kinds.PolicySnapshot + " " + there.GetName()
	switch {
	case there.GetAnnotations()[placementv1.AnnotationPlacementUID] != string(p.GetUID()) && !metav1.IsControlledBy(there, p):
		return &obstacleError{fmt.Sprintf("%s was not made for this placement, and has the name that the snapshot of its policy is to have: delete it", what)}
	case !there.GetDeletionTimestamp().IsZero() && len(there.GetFinalizers()) > 0:
		return &obstacleError{fmt.Sprintf("%s is being deleted since %s, and is held by %s, which whoever put that there is to remove: it is made again once it is gone",
			what, there.GetDeletionTimestamp().UTC().Format(time.RFC3339), strings.Join(there.GetFinalizers(), ", "))}
	case !there.GetDeletionTimestamp().IsZero():
		return errBehind
	}
	err := c.patchPolicy(ctx, there, func() {
		labels, annotations := there.GetLabels(), there.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		for _, key := range []string{placementv1.LabelParentPlacement, placementv1.LabelPolicyIndex} {
			labels[key] = wanted.GetLabels()[key]
		}
		annotations[placementv1.AnnotationPlacementUID] = string(p.GetUID())
		there.SetLabels(labels)
		there.SetAnnotations(annotations)
	})
	if err != nil {
		return err
	}
	return errBehind
}
