package verdict

import (
	"fmt"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOf(t *testing.T) {
	t.Parallel()
	const now, before = 2, 1
	c := func(conditionType string, status metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: reason, ObservedGeneration: generation}
	}
	unavailable := c(placementv1.ConditionAvailable, metav1.ConditionFalse, placementv1.ReasonNotAllWorkAreAvailable, now)
	cases := map[string]struct {
		conditions []metav1.Condition
		failed     []metav1.Condition
		want       Verdict
		trouble    string
	}{
		"nothing said": {},
		"available":    {conditions: []metav1.Condition{c(placementv1.ConditionAvailable, metav1.ConditionTrue, "", now)}, want: Done},
		"available, as far as can be told": {
			conditions: []metav1.Condition{c(placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonNotAllWorkAreAvailabilityTrackable, now)},
			want:       Done,
		},
		"was available before":    {conditions: []metav1.Condition{c(placementv1.ConditionAvailable, metav1.ConditionTrue, "", before)}},
		"being applied":           {conditions: []metav1.Condition{c(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonApplyInProgress, now)}},
		"works not written yet":   {conditions: []metav1.Condition{c(placementv1.ConditionWorkSynchronized, metav1.ConditionFalse, placementv1.ReasonWorkNotSynchronizedYet, now)}},
		"not available yet":       {conditions: []metav1.Condition{unavailable}, failed: []metav1.Condition{c(placementv1.ConditionAvailable, metav1.ConditionFalse, placementv1.ReasonManifestNotAvailableYet, 1)}},
		"availability failed":     {conditions: []metav1.Condition{unavailable}, failed: []metav1.Condition{c(placementv1.ConditionAvailable, metav1.ConditionFalse, placementv1.ReasonManifestAvailabilityFailed, 1)}, want: Failing, trouble: TroubleHealth},
		"apply failed":            {conditions: []metav1.Condition{c(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveBeenApplied, now)}, want: Failing, trouble: TroubleApply},
		"apply failed before":     {conditions: []metav1.Condition{c(placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonNotAllWorkHaveBeenApplied, before)}},
		"works cannot be written": {conditions: []metav1.Condition{c(placementv1.ConditionWorkSynchronized, metav1.ConditionFalse, placementv1.ReasonSyncWorkFailed, now)}, want: Failing, trouble: TroubleSync},
		"overrides fail":          {conditions: []metav1.Condition{c(placementv1.ConditionOverridden, metav1.ConditionFalse, "OverriddenFailed", now)}, want: Failing, trouble: TroubleOverride},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: now}}
			b.Status.Conditions = tc.conditions
			for _, f := range tc.failed {
				b.Status.FailedPlacements = append(b.Status.FailedPlacements, placementv1.FailedResourcePlacement{Condition: f})
			}
			if got, trouble := Of(b); got != tc.want || trouble != tc.trouble {
				t.Errorf("got %d, %q, want %d, %q", got, trouble, tc.want, tc.trouble)
			}
		})
	}
}

// A cluster waits for somebody alone only where nothing is missing but what was paused, or what a Rollout that waits updates.
func TestPaused(t *testing.T) {
	t.Parallel()
	const (
		paused  = placementv1.ReasonManifestPaused
		rollout = placementv1.ReasonManifestUpdatedByRollout
		notYet  = placementv1.ReasonManifestNotAvailableYet
		// onItsWay is of a Rollout itself.
		onItsWay = "the Rollout is on its way"
	)
	cases := map[string]struct {
		reasons []string
		stale   bool
		applied bool
		want    string
	}{
		"nothing is missing":                                 {},
		"a paused Deployment":                                {reasons: []string{paused}, want: "object 0 is paused"},
		"two of them":                                        {reasons: []string{paused, paused}, want: "object 0 is paused, and 1 more"},
		"a Rollout that waits, and its Deployment":           {reasons: []string{rollout, paused}, want: "object 1 is paused"},
		"a Rollout that is on its way, and its Deployment":   {reasons: []string{notYet, rollout}},
		"a Deployment whose Rollout is in another placement": {reasons: []string{rollout}},
		"one that is paused, and one that is not":            {reasons: []string{paused, notYet}},
		"another Rollout is on its way":                      {reasons: []string{paused, onItsWay}},
		"one that cannot be applied":                         {reasons: []string{paused}, applied: true},
		"of an older revision":                               {reasons: []string{paused}, stale: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &placementv1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			available := metav1.Condition{Type: placementv1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: placementv1.ReasonNotAllWorkAreAvailable, ObservedGeneration: 2}
			if tc.stale {
				available.ObservedGeneration = 1
			}
			b.Status.Conditions = []metav1.Condition{available}
			for i, reason := range tc.reasons {
				failed := placementv1.FailedResourcePlacement{Condition: metav1.Condition{Type: placementv1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: reason}}
				failed.Kind, failed.Name = "object", fmt.Sprint(i)
				if reason == onItsWay {
					failed.Group, failed.Kind, failed.Condition.Reason = "rollouts.kruise.io", "Rollout", rollout
				}
				if tc.applied {
					failed.Condition.Type = placementv1.ConditionApplied
				}
				b.Status.FailedPlacements = append(b.Status.FailedPlacements, failed)
			}
			if got := Paused(b); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Of the steps that wait to be approved each is told once: a Rollout and its Deployment say the same.
func TestApprovals(t *testing.T) {
	t.Parallel()
	b := &placementv1.ClusterResourceBinding{}
	web := kruise.AwaitedApproval{Step: 1, Steps: 2, Namespace: "shop", Name: "web"}
	api := kruise.AwaitedApproval{Step: 3, Steps: 4, Namespace: "shop", Name: "api"}
	for _, c := range []metav1.Condition{
		{Type: placementv1.ConditionAvailable, Reason: placementv1.ReasonManifestPaused, Message: "Manifest is not yet available: " + web.String()},
		{Type: placementv1.ConditionAvailable, Reason: placementv1.ReasonManifestPaused, Message: web.String()},
		{Type: placementv1.ConditionAvailable, Reason: placementv1.ReasonManifestPaused, Message: "it is paused"},
		{Type: placementv1.ConditionAvailable, Reason: placementv1.ReasonManifestPaused, Message: api.String()},
		{Type: placementv1.ConditionAvailable, Reason: placementv1.ReasonManifestAvailabilityFailed, Message: kruise.AwaitedApproval{Step: 2, Steps: 2, Namespace: "a", Name: "b"}.String()},
		{Type: placementv1.ConditionApplied, Reason: placementv1.ReasonManifestPaused, Message: kruise.AwaitedApproval{Step: 2, Steps: 2, Namespace: "a", Name: "b"}.String()},
	} {
		b.Status.FailedPlacements = append(b.Status.FailedPlacements, placementv1.FailedResourcePlacement{Condition: c})
	}
	if diff := cmp.Diff([]kruise.AwaitedApproval{web, api}, Approvals(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
