package placement

import (
	"context"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	model "github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/placement/rollup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Delays before what could not be read is read again.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// evaluate finds out what the placement selects, when that may have changed and things have been quiet for a moment, and
// has a revision made of it. Where update runs make the revisions it does no more than check the selectors. It returns
// when to do so, 0 for never.
func (c *Controller) evaluate(ctx context.Context, key model.Key, p placementv1.PlacementObject, m *memory) time.Duration {
	if m.touched != p.GetGeneration() {
		m.touched = p.GetGeneration()
		c.quiet.touch(key)
	}
	external := p.PlacementSpec().IsExternal()
	after, changed := c.quiet.wait(key)
	if !changed {
		if m.retry.IsZero() {
			return 0
		}
		after = m.retry.Sub(c.Clock.Now())
	}
	if after > 0 && !(external && changed) {
		return after
	}
	c.quiet.settle(key)
	selectors, err := model.ParseSelectors(p, c.Rules)
	if err != nil {
		selectors = nil // only an edit of the placement helps, and that is noticed anyway
	}
	interest := selection.Interest{Selectors: selectors, Watch: !external, Roots: m.roots, Selecting: true}
	c.Watches.Set(key, interest)
	selected, err := c.look(ctx, p, m)
	if selected.Roots != nil {
		m.roots = selected.Roots
	}
	interest.Roots, interest.Selecting = m.roots, false
	interest.Unresolved, interest.Catalogue = err != nil, selected.Catalogue
	c.Watches.Set(key, interest)
	m.evaluated, m.unmatched = p.GetGeneration(), selected.Unmatched
	return c.judge(ctx, m, err)
}

// look checks the selectors or makes a revision.
func (c *Controller) look(ctx context.Context, p placementv1.PlacementObject, m *memory) (*selection.Selection, error) {
	if err := c.moved(ctx, p); err != nil {
		return &selection.Selection{}, err
	}
	if p.PlacementSpec().IsExternal() {
		return c.Validator.Validate(ctx, p)
	}
	revision, selected, err := c.Snapshots.Revise(ctx, p)
	if err == nil {
		m.revision, m.revised = &revision, c.Clock.Now()
	}
	return selected, err
}

// judge remembers what came of an evaluation, and returns when to try again.
func (c *Controller) judge(ctx context.Context, m *memory, err error) time.Duration {
	m.problem, m.retry = nil, time.Time{}
	switch {
	case err == nil:
		m.failures = 0
		return 0
	case model.IsUserError(err):
		m.failures = 0
		m.problem = &rollup.Problem{
			Status:  metav1.ConditionFalse,
			Reason:  placementv1.ReasonInvalidResourceSelectors,
			Message: "The resource selectors are invalid, and nothing new is rolled out until they are corrected: " + err.Error(),
		}
		return 0
	case isStale(err):
		log.FromContext(ctx).V(1).Info("Making the resource snapshot again", "reason", err.Error())
	default:
		log.FromContext(ctx).Info("What is selected is not known", "reason", err.Error())
	}
	m.problem = &rollup.Problem{
		Status: metav1.ConditionUnknown,
		Reason: placementv1.ReasonResourceSelectionIncomplete,
		Message: "What is selected is not known, so nothing changes in the clusters until it is, which is tried again by itself: " +
			err.Error(),
	}
	after := lastRetry
	if m.failures < 5 {
		after = firstRetry << m.failures
	}
	m.failures++
	m.retry = c.Clock.Now().Add(after)
	return after
}
