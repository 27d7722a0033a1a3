package updaterun

import (
	"context"
	"errors"
	"fmt"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	engine "github.com/fleetwright/fleetwright/internal/rollout/updaterun"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// errGone is the outcome of changing an object that was deleted meanwhile.
var errGone = errors.New("it is gone")

// carryOut writes one result: bindings, which say by themselves which run moved them, then approval requests, then the
// run's status, once. What fails ends it there; the next decision goes on from whatever was written. It returns for how long
// the status waits to be written, 0 if it does not.
func (c *Controller) carryOut(ctx context.Context, r engine.Result, p *pace) (wait time.Duration, err error) {
	if err := c.moveBindings(ctx, r); err != nil {
		return 0, err
	}
	if err := c.writeRequests(ctx, r); err != nil {
		return 0, err
	}
	return c.writeStatus(ctx, r, p)
}

// moveBindings writes and deletes bindings, several at once, each on the very version it was decided on. One that fails does
// not cut the others off: a write that was cut off may have been made all the same, and nobody would know.
func (c *Controller) moveBindings(ctx context.Context, r engine.Result) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for _, b := range r.Start {
		group.Go(func() error {
			if err := goneIfNotFound(c.Client.Update(ctx, b)); err != nil {
				return fmt.Errorf("start cluster %s for update run %s: %w", b.BindingSpec().TargetCluster, r.Run.GetName(), err)
			}
			c.Tracker.Wrote(b)
			return nil
		})
	}
	for _, b := range r.Delete {
		group.Go(func() error {
			err := c.Client.Delete(ctx, b, client.Preconditions{UID: ptr.To(b.GetUID()), ResourceVersion: ptr.To(b.GetResourceVersion())})
			if err = goneIfNotFound(err); err != nil {
				return fmt.Errorf("clear cluster %s for update run %s: %w", b.BindingSpec().TargetCluster, r.Run.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// writeRequests makes and answers approval requests.
func (c *Controller) writeRequests(ctx context.Context, r engine.Result) error {
	for _, request := range r.Create {
		if err := c.Client.Create(ctx, request); err != nil {
			return fmt.Errorf("create %s %s: %w", c.Kinds.ApprovalRequest, request.GetName(), err)
		}
		c.Tracker.Wrote(request)
	}
	for _, request := range r.Answer {
		if err := goneIfNotFound(c.Client.Status().Update(ctx, request)); err != nil {
			return fmt.Errorf("answer %s %s: %w", c.Kinds.ApprovalRequest, request.GetName(), err)
		}
		c.Tracker.Wrote(request)
		c.measureApproval(request)
	}
	return nil
}

// writeStatus writes a run's status if it differs, and then tells what has changed with it. The progress of clusters alone
// waits a little for more of it.
func (c *Controller) writeStatus(ctx context.Context, r engine.Result, p *pace) (wait time.Duration, err error) {
	logger := log.FromContext(ctx).WithValues("run", r.Run.GetName())
	stored := r.Run.UpdateRunStatus()
	if equality.Semantic.DeepEqual(stored, r.Status) {
		p.settle()
		for _, note := range r.Notes {
			logger.V(1).Info("Update run stays as it is", "reason", note)
		}
		return 0, nil
	}
	if wait := p.wait(c.Clock.Now()); r.MayWait && wait > 0 {
		if p.hold(stored, r.Status) {
			logSteps(logger, r)
		}
		return wait, nil
	}
	written, ok := r.Run.DeepCopyObject().(placementv1.UpdateRunObject)
	if !ok {
		return 0, fmt.Errorf("copy of update run %s is not an update run", r.Run.GetName())
	}
	*written.UpdateRunStatus() = *r.Status.DeepCopy()
	if err := goneIfNotFound(c.Client.Status().Update(ctx, written)); err != nil {
		return 0, fmt.Errorf("write the status of %s %s: %w", c.Kinds.UpdateRun, r.Run.GetName(), err)
	}
	c.Tracker.Wrote(written)
	p.wrote(c.Clock.Now())
	logSteps(logger, r)
	c.tell(written, r.Events)
	c.measureRun(r.Run, written)
	return 0, nil
}

func logSteps(logger logr.Logger, r engine.Result) {
	for _, note := range r.Notes {
		logger.Info("Update run moves", "step", note)
	}
}

func goneIfNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return errGone
	}
	return err
}
