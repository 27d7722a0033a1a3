package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/health"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxStatus is how large a Work's status may become, in bytes of JSON.
	maxStatus = 512 * 1024
	// reserve is what of it is kept for all but the manifests.
	reserve = 8 * 1024
	// maxMessage is how much of a message is kept, in bytes.
	maxMessage = 1024
	// undecided is how long the hub is not told of an object that waits for another Work, or for its definition, which as a
	// rule is there within moments.
	undecided = 5 * time.Second
	// gossip is how long a status may be behind by the wording of a message: a Deployment that grows by fifty pods is not
	// worth fifty writes.
	gossip = 5 * time.Second
	// trust is how long our own last write counts for more than a cache that has not seen it.
	trust = time.Minute
)

// current is the Work's status as we know it: what we wrote last, if the cache has not seen that yet. A cache that has not
// after so long never will: the hub was restored from a backup, where versions begin again with an earlier one.
func (p *pass) current() *placementv1.WorkStatus {
	if w := p.memory.written; w != nil && w.UID == p.work.UID && newer(w, p.work) {
		if rest := trust - p.Clock.Now().Sub(p.memory.writtenAt); rest > 0 && rest <= trust {
			p.lookAgain(rest)
			return &w.Status
		}
	}
	p.memory.written = nil
	return &p.work.Status
}

// isStrange tells whether the status of a Work has become what we did not write.
func (a *Applier) isStrange(before, after client.Object) bool {
	o, ok := before.(*placementv1.Work)
	n, also := after.(*placementv1.Work)
	if !ok || !also || equality.Semantic.DeepEqual(o.Status, n.Status) {
		return false
	}
	mark := markOf(&n.Status)
	a.mu.Lock()
	defer a.mu.Unlock()
	return mark != a.told[n.Name]
}

// markOf stands for a status.
func markOf(status *placementv1.WorkStatus) string {
	data, err := json.Marshal(status)
	if err != nil {
		return "" // no status of ours: it is looked at
	}
	sum := sha256.Sum256(data)
	return string(sum[:])
}

// report writes the status of the pass's Work, if it differs.
func (p *pass) report(ctx context.Context) error {
	if p.hesitate() {
		return nil
	}
	before := map[placementv1.WorkResourceIdentifier][]metav1.Condition{}
	details := map[objectKey]said{} // by the object, whose position in the Work may change
	for _, m := range p.current().ManifestConditions {
		before[m.Identifier] = m.Conditions
		if m.DriftDetails != nil || m.DiffDetails != nil || m.BackReportedStatus != nil {
			details[keyOfID(&m.Identifier)] = said{m.DriftDetails, m.DiffDetails, m.BackReportedStatus}
		}
	}
	status := &placementv1.WorkStatus{
		Conditions:         slices.Clone(p.current().Conditions),
		ManifestConditions: make([]placementv1.ManifestCondition, 0, len(p.manifests)),
	}
	counts := tally{total: len(p.manifests)}
	for _, m := range p.manifests {
		entry := placementv1.ManifestCondition{Identifier: m.id, Conditions: slices.Clone(before[m.id])}
		p.judge(m, &entry.Conditions, &counts)
		p.detail(m, &entry, details[m.key])
		entry.BackReportedStatus = p.mirrored(m, details[m.key].mirrored)
		entry.UnschedulableReplicas = p.unschedulable(ctx, m)
		status.ManifestConditions = append(status.ManifestConditions, entry)
	}
	statuses := trimMirrored(status.ManifestConditions)
	places := trimDetails(status.ManifestConditions)
	omitted := trim(status)
	p.tellTrimmed(status, statuses, places, omitted)
	if p.strategy.ReportsOnly() {
		p.summarizeDiffs(status, counts, omitted)
	} else {
		p.summarize(status, counts, omitted)
	}
	return p.writeStatus(ctx, status)
}

// tally counts manifests.
type tally struct{ total, applied, available, untrackable, reported, differ int }

// judge sets the conditions of one manifest.
func (p *pass) judge(m *manifest, conditions *[]metav1.Condition, counts *tally) {
	if p.strategy.ReportsOnly() {
		p.judgeDiff(m, conditions, counts)
		return
	}
	meta.RemoveStatusCondition(conditions, placementv1.ConditionDiffReported)
	if m.reason != "" {
		p.set(conditions, placementv1.ConditionApplied, metav1.ConditionFalse, m.reason, m.problem)
		meta.RemoveStatusCondition(conditions, placementv1.ConditionAvailable)
		return
	}
	counts.applied++
	message := "Manifest has been applied successfully"
	if m.note != "" {
		message += "; " + m.note
	}
	reason := placementv1.ReasonManifestApplied
	if m.undetected != "" {
		reason, message = placementv1.ReasonManifestAppliedWithFailedDriftDetection, m.undetected
	}
	p.set(conditions, placementv1.ConditionApplied, metav1.ConditionTrue, reason, message)
	verdict := health.JudgeReleased(p.latest(m), p.rollouts.of(m.key))
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
	meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionDiffReported)
	remarks := p.remarks() + notListed(omitted)
	if counts.applied < counts.total {
		p.set(&status.Conditions, placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonSomeManifestsAreNotApplied,
			fmt.Sprintf("Failed to apply all manifests (%d of %d manifests are applied)%s", counts.applied, counts.total, remarks))
		meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionAvailable)
		return
	}
	message := "All the specified manifests have been applied" + remarks
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

// remarks are what is to be said of objects that the Work does not list any more.
func (p *pass) remarks() string {
	var text string
	if len(p.memory.released) > 0 {
		text += "; " + few(p.memory.released)
	}
	if len(p.refused) > 0 {
		text += fmt.Sprintf("; what is no longer wanted cannot be removed: %v", p.refused[0])
	}
	if len(p.removing) > 0 {
		text += "; still being removed: " + few(p.removing)
	}
	if p.incomplete {
		text += "; what is no longer listed stays until all Works that carry the placement's snapshot are there: one of them may list it"
	}
	return text
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
		for i := len(sizes) - 1; i >= 0 && total > maxStatus-reserve; i-- {
			done := isDone(&status.ManifestConditions[i])
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

// isDone tells whether there is nothing to be done about an object.
func isDone(m *placementv1.ManifestCondition) bool {
	reported := meta.FindStatusCondition(m.Conditions, placementv1.ConditionDiffReported)
	return meta.IsStatusConditionTrue(m.Conditions, placementv1.ConditionAvailable) ||
		(reported != nil && reported.Reason == placementv1.ReasonManifestNoDiffFound)
}

// reportNothing says why nothing of the Work can be applied.
func (p *pass) reportNothing(ctx context.Context, why string) error {
	status := p.current().DeepCopy()
	if p.strategy.ReportsOnly() {
		p.set(&status.Conditions, placementv1.ConditionDiffReported, metav1.ConditionFalse, placementv1.ReasonSomeManifestsHaveNotReportedDiff, why)
		return p.writeStatus(ctx, status)
	}
	p.set(&status.Conditions, placementv1.ConditionApplied, metav1.ConditionFalse, placementv1.ReasonSomeManifestsAreNotApplied, why)
	meta.RemoveStatusCondition(&status.Conditions, placementv1.ConditionAvailable)
	return p.writeStatus(ctx, status)
}

// reportRemoved says how far the removal of a deleted Work has come.
func (p *pass) reportRemoved(ctx context.Context, state metav1.ConditionStatus, reason, message string) error {
	status := p.current().DeepCopy()
	p.set(&status.Conditions, placementv1.ConditionRemoved, state, reason, message)
	return p.writeStatus(ctx, status)
}

func (p *pass) set(conditions *[]metav1.Condition, conditionType string, state metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: conditionType, Status: state, Reason: reason, Message: placement.Cut(message, maxMessage),
		ObservedGeneration: p.work.Generation, LastTransitionTime: metav1.NewTime(p.Clock.Now().Truncate(time.Second)),
	})
}

// writeStatus writes the status, if it differs. What nobody acts on can wait a little.
func (p *pass) writeStatus(ctx context.Context, status *placementv1.WorkStatus) error {
	before := p.current()
	if equality.Semantic.DeepEqual(status, before) {
		return nil
	}
	if rest := mayWait(status, before) - p.Clock.Now().Sub(p.memory.writtenAt); rest > 0 {
		p.lookAgain(rest)
		return nil
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": p.work.UID},
		{"op": "add", "path": "/status", "value": status},
	})
	if err != nil {
		return fmt.Errorf("encode the status of Work %s: %w", p.work.Name, err)
	}
	p.mu.Lock()
	p.told[p.work.Name] = markOf(status) // before the event comes
	p.mu.Unlock()
	after := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: p.work.Namespace, Name: p.work.Name}}
	if err := client.IgnoreNotFound(p.hub.Status().Patch(ctx, after, client.RawPatch(types.JSONPatchType, patch))); err != nil {
		return fmt.Errorf("write the status of Work %s: %w", p.work.Name, err)
	}
	p.memory.written = &placementv1.Work{ObjectMeta: metav1.ObjectMeta{UID: after.UID, ResourceVersion: after.ResourceVersion}, Status: *status}
	p.memory.writtenAt = p.Clock.Now()
	return nil
}

// wordless is a status without the messages of its conditions.
func wordless(status *placementv1.WorkStatus) *placementv1.WorkStatus {
	s := status.DeepCopy()
	for i := range s.Conditions {
		s.Conditions[i].Message = ""
	}
	for i := range s.ManifestConditions {
		for j := range s.ManifestConditions[i].Conditions {
			s.ManifestConditions[i].Conditions[j].Message = ""
		}
	}
	return s
}
