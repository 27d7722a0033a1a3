package apply

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	// mirrorPace is how long a status may be behind by the statuses of objects alone: a Deployment that counts its pods up makes
	// one write of all that happens within that time.
	mirrorPace = time.Second
	// maxMirrored is how large the status of one object may be to be reported, in bytes of JSON.
	maxMirrored = 64 * 1024
)

// unmirrored are kinds of which nothing is reported, whatever somebody in the member writes into a status.
var unmirrored = map[schema.GroupKind]bool{secrets: true, {Kind: "ConfigMap"}: true}

// mirrored is the status of a manifest's object, to be reported as the Work wants it; nil where there is none to report. One
// that is as it was reported before has been observed since then.
func (p *pass) mirrored(m *manifest, before *placementv1.BackReportedStatus) *placementv1.BackReportedStatus {
	if !p.work.Spec.ReportBackStrategy.Mirrors() || p.strategy.ReportsOnly() || m.reason != "" || unmirrored[m.key.GroupKind] {
		return nil
	}
	live := p.latest(m)
	status, _, err := unstructured.NestedMap(live.Object, "status")
	if err != nil || len(status) == 0 {
		return nil
	}
	observed := map[string]any{"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "status": status}
	if before != nil && before.ObservedInMemberClusterGeneration == live.GetGeneration() && says(before.ObservedStatus.Raw, observed) {
		return before
	}
	raw, err := json.Marshal(observed)
	if err != nil {
		return nil // what came as JSON can be encoded
	}
	return &placementv1.BackReportedStatus{
		ObservedStatus:                    placementv1.ResourceContent{RawExtension: runtime.RawExtension{Raw: raw}},
		ObservedInMemberClusterGeneration: live.GetGeneration(),
		ObservationTime:                   metav1.NewTime(p.Clock.Now().Truncate(time.Second)),
	}
}

// says tells whether JSON says a value, however it is written.
func says(raw []byte, value map[string]any) bool {
	var said map[string]any
	return utiljson.Unmarshal(raw, &said) == nil && equality.Semantic.DeepEqual(said, value)
}

// latest is a manifest's object as it was seen last.
func (p *pass) latest(m *manifest) *unstructured.Unstructured {
	if seen := p.watches.get(m.gvr, m.key); seen != nil && seen.object != nil && seen.object.GetUID() == m.live.GetUID() && newer(seen.object, m.live) {
		return seen.object
	}
	return m.live
}

// trimMirrored leaves out statuses of objects: those that are too large by themselves, and then the largest, until the entries
// are within their size. It returns how many.
func trimMirrored(entries []placementv1.ManifestCondition) (omitted int) {
	var mirrored []*placementv1.ManifestCondition
	for i := range entries {
		switch e := &entries[i]; {
		case e.BackReportedStatus == nil:
		case len(e.BackReportedStatus.ObservedStatus.Raw) > maxMirrored:
			e.BackReportedStatus = nil
			omitted++
		default:
			mirrored = append(mirrored, e)
		}
	}
	if len(mirrored) == 0 {
		return omitted
	}
	slices.SortStableFunc(mirrored, func(a, b *placementv1.ManifestCondition) int {
		return cmp.Compare(len(b.BackReportedStatus.ObservedStatus.Raw), len(a.BackReportedStatus.ObservedStatus.Raw))
	})
	for excess := size(entries) - (maxStatus - reserve); excess > 0 && len(mirrored) > 0; mirrored = mirrored[1:] {
		excess -= size(mirrored[0].BackReportedStatus)
		mirrored[0].BackReportedStatus = nil
		omitted++
	}
	return omitted
}

func notMirrored(omitted int) string {
	if omitted == 0 {
		return ""
	}
	return fmt.Sprintf("; the statuses of %d objects are not reported back", omitted)
}

// mayWait is how long a status may be behind: longest where the wording of messages is all in which it differs from the one that
// was written, and for a moment where the statuses of objects are.
func mayWait(status, before *placementv1.WorkStatus) time.Duration {
	status, before = wordless(status), wordless(before)
	if equality.Semantic.DeepEqual(status, before) {
		return gossip
	}
	for _, s := range []*placementv1.WorkStatus{status, before} {
		for i := range s.ManifestConditions {
			s.ManifestConditions[i].BackReportedStatus = nil
		}
	}
	if equality.Semantic.DeepEqual(status, before) {
		return mirrorPace
	}
	return 0
}
