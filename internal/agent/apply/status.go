package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/health"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxStatus is how large a Work's status may become, in bytes of JSON.
	maxStatus = 512 * 1024
	// maxMessage is how much of a message is kept.
	maxMessage = 1024
)

// report writes the status of the pass's Work, if it differs.
func (p *pass) report(ctx context.Context) error {
	before := map[placementv1.WorkResourceIdentifier][]metav1.Condition{}
	for _, m := range p.work.Status.ManifestConditions {
		before[m.Identifier] = m.Conditions
	}
	status := p.work.Status.DeepCopy()
	status.ManifestConditions = make([]placementv1.ManifestCondition, 0, len(p.manifests))
	counts := tally{total: len(p.manifests)}
	for _, m := range p.manifests {
		conditions := append([]metav1.Condition(nil), before[m.id]...)
		p.judge(m, &conditions, &counts)
		status.ManifestConditions = append(status.ManifestConditions, placementv1.ManifestCondition{Identifier: m.id, Conditions: conditions})
	}
	omitted := trim(status)
	p.summarize(status, counts, omitted)
	return p.write(ctx, status)
}

// tally counts manifests.
type tally struct{ total, applied, available, untrackable int }

// judge sets the conditions of one manifest.
func (p *pass) judge(m *manifest, conditions *[]metav1.Condition, counts *tally) {
	if m.reason != "" {
		p.set(conditions, placementv1.ConditionApplied, metav1.ConditionFalse, m.reason, m.problem)
		meta.RemoveStatusCondition(conditions, placementv1.ConditionAvailable)
		return
	}
	counts.applied++
	message := "Manifest has been applied successfully"
	if m.note != "" {
		message += "; the member's API does not know, and dropped: " + m.note
	}
	p.set(conditions, placementv1.ConditionApplied, metav1.ConditionTrue, placementv1.ReasonManifestApplied, message)
	live := m.live
	if seen := p.watches.get(m.gvr, m.key); seen != nil && seen.GetUID() == live.GetUID() && newer(seen, live) {
		live = seen
	}
	verdict := health.Judge(live)
	state := metav1.ConditionFalse
	if verdict.Available {
		state = metav1.ConditionTrue
		counts.available++
	}
	if verdict.Reason == placementv1.ReasonManifestNotTrackable {
		counts.untrackable++
	}
	p.set(conditions, placementv1.ConditionAvailable, state, verdict.Reason, verdict.Message)
}

func (p *pass) summarize(status *placementv1.WorkStatus, counts tally, omitted int) {
	if counts.applied < counts.total {
		p.set(&status.Conditions, placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonSomeManifestsAreNotApplied,
			fmt.Sprintf("Failed to apply all manifests (%d of %d manifests are applied)%s", counts.applied, counts.total, notListed(omitted)))
		meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionAvailable)
		return
	}
	message := "All the specified manifests have been applied" + notListed(omitted)
	if len(p.released) > 0 {
		message += "; " + few(p.released)
	}
	p.set(&status.Conditions, placementv1.ConditionApplied, metav1.ConditionTrue, placementv1.ReasonAllManifestsApplied, message)
	switch {
	case counts.available < counts.total:
		p.set(&status.Conditions, placementv1.ConditionAvailable, metav1.ConditionFalse, placementv1.ReasonSomeManifestsAreNotAvailable,
			fmt.Sprintf("Some manifests are not available (%d of %d manifests are available)", counts.available, counts.total))
	case counts.untrackable > 0:
		p.set(&status.Conditions, placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonWorkNotTrackable,
			"Some of the applied manifests cannot be tracked for availability")
	default:
		p.set(&status.Conditions, placementv1.ConditionAvailable, metav1.ConditionTrue, placementv1.ReasonAllManifestsAvailable,
			"All of the applied manifests are available")
	}
}

func notListed(omitted int) string {
	if omitted == 0 {
		return ""
	}
	return fmt.Sprintf("; %d manifests are not listed, to keep the status small", omitted)
}

// trim leaves out entries, those of manifests that are done first, until the status is within its size, and returns how
// many.
func trim(status *placementv1.WorkStatus) int {
	sizes := make([]int, len(status.ManifestConditions))
	total := 0
	for i := range status.ManifestConditions {
		data, err := json.Marshal(status.ManifestConditions[i])
		if err != nil {
			continue
		}
		sizes[i] = len(data) + 1
		total += sizes[i]
	}
	keep := make([]bool, len(sizes))
	for i := range keep {
		keep[i] = true
	}
	for _, doneOnly := range []bool{true, false} {
		for i := len(sizes) - 1; i >= 0 && total > maxStatus-8*1024; i-- {
			done := meta.IsStatusConditionTrue(status.ManifestConditions[i].Conditions, placementv1.ConditionAvailable)
			if keep[i] && (done || !doneOnly) {
				keep[i] = false
				total -= sizes[i]
			}
		}
	}
	var kept []placementv1.ManifestCondition
	for i := range status.ManifestConditions {
		if keep[i] {
			kept = append(kept, status.ManifestConditions[i])
		}
	}
	omitted := len(sizes) - len(kept)
	status.ManifestConditions = kept
	return omitted
}

// reportNothing says why nothing of the Work can be applied.
func (p *pass) reportNothing(ctx context.Context, why string) error {
	status := p.work.Status.DeepCopy()
	p.set(&status.Conditions, placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonSomeManifestsAreNotApplied, why)
	meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionAvailable)
	return p.write(ctx, status)
}

// reportRemoved says how far the removal of a deleted Work has come.
func (p *pass) reportRemoved(ctx context.Context, state metav1.ConditionStatus, reason, message string) error {
	status := p.work.Status.DeepCopy()
	p.set(&status.Conditions, placementv1.ConditionRemoved, state, reason, message)
	return p.write(ctx, status)
}

func (p *pass) set(conditions *[]metav1.Condition, conditionType string, state metav1.ConditionStatus, reason, message string) {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…" // a character that was cut in two goes
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: conditionType, Status: state, Reason: reason, Message: message,
		ObservedGeneration: p.work.Generation, LastTransitionTime: metav1.NewTime(p.Clock.Now()),
	})
}

// write patches the status, if it differs.
func (p *pass) write(ctx context.Context, status *placementv1.WorkStatus) error {
	if equality.Semantic.DeepEqual(*status, p.work.Status) {
		return nil
	}
	after := p.work.DeepCopy()
	after.Status = *status
	if err := client.IgnoreNotFound(p.hub.Status().Patch(ctx, after, client.MergeFrom(p.work))); err != nil {
		return fmt.Errorf("write the status of Work %s: %w", p.work.Name, err)
	}
	p.memory.written = &placementv1.Work{ObjectMeta: metav1.ObjectMeta{UID: after.UID, ResourceVersion: after.ResourceVersion}}
	return nil
}
