// Package division places one object that a policy claims: it keeps the object's revisions, decides which clusters it goes to and
// with how many replicas, and has a binding for each of them.
package division

import (
	"context"
	"errors"
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	"github.com/fleetwright/fleetwright/internal/hub/listing"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule/ledger"
	"github.com/fleetwright/fleetwright/internal/snapshot"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

var (
	// errStale is the outcome of a decision on what was not true any more.
	errStale = errors.New("the cache is behind")
	// errRefused ends a pass of which the status says why: nothing follows until the object or its policy changes.
	errRefused = errors.New("the object cannot be placed as it is")
)

// Snapshots keeps the revisions of an object.
type Snapshots interface {
	Keep(context.Context, placementv1.ParentObject, []snapshot.Object) (snapshots.Revision, error)
}

// Controller places the objects of one scope.
type Controller struct {
	// Client reads from the cache; APIReader reads from the API server, among others the objects that are placed.
	Client    client.Client
	APIReader client.Reader
	Carriage  *placement.Carriage
	Snapshots Snapshots
	Recorder  events.EventRecorder
	Clock     clock.Clock
	// Ledger is shared by the controllers of both scopes.
	Ledger *ledger.Ledger
	// DeschedulingInterval is how often replicas are moved that find no node where they are. Default: 2 minutes.
	DeschedulingInterval time.Duration
	// Changes tells of objects on the hub.
	Changes Changes

	tracker consistency.Tracker
	made    consistency.Awaited[client.ObjectKey] // bindings that we made and that the cache has not shown yet
	kept    kept
	needs   needs
	moving  keys // those whose replicas are on the move: they are looked at when clusters report
	waiting keys // those that wait for room

	descheduled deschedulings
	objects     enqueue.Queue[ctrl.Request]
}

// pass is all that one look at an object needs, and what comes of it.
type pass struct {
	placement policyv1alpha1.ObjectPlacementObject
	// object is what is placed, as it is on the hub.
	object *unstructured.Unstructured
	// replicas is how many the object wants; nil where it has none.
	replicas *int32
	bindings []placementv1.BindingObject
	// told is what each cluster says of the object.
	told   map[string]told
	status policyv1alpha1.ObjectPlacementStatus
	// notes are what else there is to say to a person.
	notes []string
	// after is when to look again without an event; nought is never.
	after time.Duration
}

func (p *pass) key() placement.Key { return client.ObjectKeyFromObject(p.placement) }

func (p *pass) spec() *policyv1alpha1.ObjectPlacementSpec { return p.placement.ObjectPlacementSpec() }

// Reconcile places one object.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	op, ok := c.Carriage.NewParent().(policyv1alpha1.ObjectPlacementObject)
	if !ok {
		return ctrl.Result{}, fmt.Errorf("a %s is no internal placement", c.Carriage.Parent)
	}
	if err := c.Client.Get(ctx, request.NamespacedName, op); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if c.tracker.Behind(op) {
		return ctrl.Result{}, nil // the event that the cache waits for brings the next pass
	}
	p := &pass{placement: op, status: *op.ObjectPlacementStatus().DeepCopy()}
	err := c.place(ctx, p)
	if errors.Is(err, errStale) || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		log.FromContext(ctx).V(1).Info("Looking again: the cache is behind", "reason", err.Error())
		return ctrl.Result{RequeueAfter: enqueue.Stale}, nil
	}
	return ctrl.Result{RequeueAfter: p.after}, err
}

func (c *Controller) place(ctx context.Context, p *pass) (err error) {
	if p.bindings, err = listing.Bindings(ctx, c.Client, c.Carriage, p.key(), listing.Shared); err != nil {
		return err
	}
	if c.behind(p.bindings) {
		return errStale
	}
	if !p.placement.GetDeletionTimestamp().IsZero() {
		return c.remove(ctx, p)
	}
	defer func() {
		if errors.Is(err, errRefused) {
			err = nil
		}
		if !errors.Is(err, errStale) {
			err = errors.Join(err, c.report(ctx, p))
		}
	}()
	if p.spec().Policy == nil {
		p.released(c.Clock.Now())
		return nil
	}
	found, err := c.read(ctx, p)
	if err != nil || !found {
		return err
	}
	if err := c.awaitOverrides(ctx, p); err != nil {
		return err
	}
	if err := c.keep(ctx, p); err != nil {
		return err
	}
	return c.divide(ctx, p)
}

// behind tells whether the cache does not yet show a binding as we wrote it.
func (c *Controller) behind(bindings []placementv1.BindingObject) bool {
	behind := false
	for _, b := range bindings {
		behind = c.tracker.Behind(b) || behind
	}
	return behind
}

// report writes the status where it differs.
func (c *Controller) report(ctx context.Context, p *pass) error {
	p.observe(c.Clock.Now())
	if equality.Semantic.DeepEqual(p.status, *p.placement.ObjectPlacementStatus()) {
		return nil
	}
	before := p.placement.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of an object is one
	*p.placement.ObjectPlacementStatus() = p.status
	err := c.Client.Status().Patch(ctx, p.placement, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the status of %s %s: %w", c.Carriage.Parent, p.key(), err)
	}
	c.tracker.Wrote(p.placement)
	return nil
}
