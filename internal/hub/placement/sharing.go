package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	model "github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// shareRetry is when to try again to write a status into the namespace of those who are to read it.
const shareRetry = 10 * time.Second

// errNoName says that a placement which is to share its status selects namespaces by label.
var errNoName = errors.New("the selector of kind Namespace names no namespace to put it into; select the namespace by name")

// shares tells whether a placement's status is to be read in the namespace that it places.
func (c *Controller) shares(p placementv1.PlacementObject) bool {
	return !c.Kinds.Namespaced && p.PlacementSpec().StatusReportingScope == placementv1.StatusReportingNamespaceAccessible
}

// shared returns the copy of the placement's status that there is, or nil. One in another namespace than the placement
// selects now is preferred: the namespace may not be changed.
func (c *Controller) shared(ctx context.Context, p placementv1.PlacementObject) (*placementv1.ClusterResourcePlacementStatus, error) {
	list := &placementv1.ClusterResourcePlacementStatusList{}
	if err := c.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the copies of placements' statuses: %w", err)
	}
	for i := range list.Items {
		if o := &list.Items[i]; o.Name == p.GetName() && metav1.IsControlledBy(o, p) && o.DeletionTimestamp == nil {
			return o.DeepCopy(), nil
		}
	}
	return nil, nil //nolint:nilnil // none is an answer, not an error
}

// sharingSelector is the one selector of a namespace that a placement which shares its status has.
func sharingSelector(p placementv1.PlacementObject) (index int, namespace string) {
	selectors := p.PlacementSpec().ResourceSelectors
	index = slices.IndexFunc(selectors, func(s placementv1.ResourceSelector) bool { return s.Kind == model.NamespaceKind.Kind })
	if index < 0 {
		return index, ""
	}
	return index, selectors[index].Name
}

// moved returns a UserError where a placement that shares its status in one namespace has come to select another: those who
// read it there would be left with a status that does not change any more.
func (c *Controller) moved(ctx context.Context, p placementv1.PlacementObject) error {
	if !c.shares(p) {
		return nil
	}
	copied, err := c.shared(ctx, p)
	index, namespace := sharingSelector(p)
	if err != nil || copied == nil || index < 0 || namespace == copied.Namespace {
		return err
	}
	return &model.UserError{
		Selector: index, About: fmt.Sprintf("v1 Namespace %q", namespace),
		Problem: fmt.Sprintf("namespace resource selector is choosing a different namespace '%s' from what was originally picked '%s'. "+
			"This is not allowed for NamespaceAccessible ClusterResourcePlacement", namespace, copied.Namespace),
		Remedy: fmt.Sprintf("select namespace %s again, or make another placement for the other one", copied.Namespace),
	}
}

// share copies the status into the namespace that the placement selects, and says in the status how that went. It returns
// when to try again; 0 where that is not needed.
func (c *Controller) share(ctx context.Context, p placementv1.PlacementObject, status *placementv1.PlacementStatus) (time.Duration, error) {
	if !c.shares(p) {
		return 0, nil
	}
	synced := metav1.Condition{
		Type: c.Kinds.ConditionPrefix + placementv1.ConditionStatusSynced, Status: metav1.ConditionTrue, Reason: placementv1.ReasonStatusSyncSucceeded,
		ObservedGeneration: p.GetGeneration(), LastTransitionTime: metav1.NewTime(c.Clock.Now()),
	}
	namespace, again, err := c.copyStatus(ctx, p, status)
	switch {
	case err == nil && namespace == "":
		return again, nil // of a placement that is being deleted there is no copy any more
	case isStale(err):
		return 0, err
	case err != nil:
		synced.Status, synced.Reason = metav1.ConditionFalse, placementv1.ReasonStatusSyncFailed
		synced.Message = model.Quote("Failed to create or update ClusterResourcePlacementStatus: " + err.Error())
	default:
		synced.Message = fmt.Sprintf("Successfully created or updated ClusterResourcePlacementStatus in namespace '%s'", namespace)
	}
	before := meta.FindStatusCondition(p.PlacementStatus().Conditions, synced.Type)
	if before != nil && before.Status == synced.Status {
		synced.LastTransitionTime = before.LastTransitionTime
	}
	status.Conditions = append(status.Conditions, synced)
	return again, nil
}

// withSynced is a status with what the placement's last one said of its copy.
func (c *Controller) withSynced(p placementv1.PlacementObject, status placementv1.PlacementStatus) placementv1.PlacementStatus {
	said := meta.FindStatusCondition(p.PlacementStatus().Conditions, c.Kinds.ConditionPrefix+placementv1.ConditionStatusSynced)
	if said != nil && c.shares(p) {
		status.Conditions = append(slices.Clone(status.Conditions), *said)
	}
	return status
}

// copyStatus makes the copy, or brings it in line. It returns the copy's namespace, and when to try again what has failed. For a
// placement that is being deleted it makes none: the namespace may be on its way out, too. Without one it then returns none.
func (c *Controller) copyStatus(ctx context.Context, p placementv1.PlacementObject, status *placementv1.PlacementStatus) (namespace string, again time.Duration, err error) {
	copied, err := c.shared(ctx, p)
	if err != nil {
		return "", shareRetry, err
	}
	if copied == nil && !p.GetDeletionTimestamp().IsZero() {
		return "", 0, nil
	}
	if copied == nil {
		_, namespace = sharingSelector(p)
		return c.makeCopy(ctx, p, namespace, status)
	}
	if equality.Semantic.DeepEqual(copied.SourceStatus, *status) {
		return copied.Namespace, 0, nil
	}
	copied.SourceStatus, copied.LastUpdatedTime = *status.DeepCopy(), metav1.NewTime(c.Clock.Now())
	if err := c.Client.Update(ctx, copied); err != nil {
		return "", shareRetry, fmt.Errorf("write it in namespace %s: %w", copied.Namespace, err)
	}
	return copied.Namespace, 0, nil
}

func (c *Controller) makeCopy(ctx context.Context, p placementv1.PlacementObject, namespace string, status *placementv1.PlacementStatus) (string, time.Duration, error) {
	switch {
	case namespace == "":
		return "", 0, errNoName
	case c.Rules.Reserved(namespace):
		return "", 0, fmt.Errorf("namespace %s is reserved, and nothing is put into it", namespace)
	}
	made := &placementv1.ClusterResourcePlacementStatus{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: p.GetName(), Labels: map[string]string{placementv1.LabelParentPlacement: p.GetName()},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: placementv1.GroupVersion.String(), Kind: c.Kinds.Placement, Name: p.GetName(), UID: p.GetUID(), Controller: ptr.To(true),
			}},
		},
		SourceStatus: *status.DeepCopy(), LastUpdatedTime: metav1.NewTime(c.Clock.Now()),
	}
	err := c.Client.Create(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		return c.replaceCopy(ctx, p, made)
	}
	if err != nil {
		return "", shareRetry, fmt.Errorf("make it in namespace %s: %w", namespace, err)
	}
	return namespace, 0, nil
}

// replaceCopy removes what has the name of a copy and is none of this placement: it is from an earlier one, or somebody made
// it. The copy is made when it is gone.
func (c *Controller) replaceCopy(ctx context.Context, p placementv1.PlacementObject, made *placementv1.ClusterResourcePlacementStatus) (string, time.Duration, error) {
	live := &placementv1.ClusterResourcePlacementStatus{}
	if err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(made), live); err != nil {
		return "", shareRetry, fmt.Errorf("read what is there in namespace %s: %w", made.Namespace, err)
	}
	if live.DeletionTimestamp != nil && len(live.Finalizers) > 0 { // whoever made it
		return "", shareRetry, fmt.Errorf("the one in namespace %s is being deleted since %s, and held by the finalizer %s; it is made again when whoever set that has removed it",
			made.Namespace, live.DeletionTimestamp.UTC().Format(time.RFC3339), strings.Join(live.Finalizers, ", "))
	}
	if metav1.IsControlledBy(live, p) {
		return "", 0, errBehind // the cache has yet to see what we made
	}
	if err := c.Client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.UID)}); client.IgnoreNotFound(err) != nil {
		return "", shareRetry, fmt.Errorf("remove what is there in namespace %s and is not this placement's: %w", made.Namespace, err)
	}
	return "", 0, errBehind
}

// unshare removes the copy of a status whose placement goes.
func (c *Controller) unshare(ctx context.Context, p placementv1.PlacementObject) error {
	if !c.shares(p) {
		return nil
	}
	copied, err := c.shared(ctx, p)
	if err != nil || copied == nil {
		return err
	}
	if err := c.Client.Delete(ctx, copied, client.Preconditions{UID: ptr.To(copied.UID)}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the copy of the status in namespace %s: %w", copied.Namespace, err)
	}
	return nil
}

// ofItsName looks at the placement of an object's name.
func ofItsName() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetName()}}}
	})
}
