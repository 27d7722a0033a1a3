package drift

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
)

// TestAnnotationsOfSecrets are those in which others keep what they applied: of a Secret, with what it holds.
func TestAnnotationsOfSecrets(t *testing.T) {
	t.Parallel()
	const record = "objectset.rio.cattle.io/applied"
	for name, tc := range map[string]struct {
		member, hub string
		want        []placementv1.PatchDetail
	}{
		"of a Secret": {
			`{kind: Secret, metadata: {annotations: {` + record + `: swordfish}, labels: {tier: "1"}}}`, `{kind: Secret, metadata: {annotations: {note: tr0ub4dor}}}`,
			[]placementv1.PatchDetail{
				{Path: "/metadata/annotations/note", ValueInHub: Redacted},
				{Path: "/metadata/annotations/objectset.rio.cattle.io~1applied", ValueInMember: Redacted},
				{Path: "/metadata/labels/tier", ValueInMember: "1"},
			},
		},
		"of an envelope": {
			`{kind: ConfigMap, metadata: {annotations: {` + record + `: swordfish, ` + envelope + `: "true"}}}`, `{kind: ConfigMap, metadata: {annotations: {` + envelope + `: "true"}}}`,
			[]placementv1.PatchDetail{{Path: "/metadata/annotations/objectset.rio.cattle.io~1applied", ValueInMember: Redacted}},
		},
		"of another object": {
			`{kind: ConfigMap, metadata: {annotations: {` + record + `: open}}}`, `{kind: ConfigMap, metadata: {}}`,
			[]placementv1.PatchDetail{{Path: "/metadata/annotations/objectset.rio.cattle.io~1applied", ValueInMember: "open"}},
		},
		"of a Secret within an object": {
			`{kind: X, spec: {items: [{kind: Secret, metadata: {name: a, annotations: {` + record + `: swordfish}}}], annotations: {open: x}}}`, `{kind: X, spec: {}}`,
			[]placementv1.PatchDetail{
				{Path: "/spec/annotations", ValueInMember: `{"open":"x"}`},
				{Path: "/spec/items", ValueInMember: `[{"kind":"Secret","metadata":{"annotations":"` + Redacted + `","name":"a"}}]`},
			},
		},
		"of a Secret within both": {
			`{kind: X, spec: {item: {kind: Secret, metadata: {annotations: {` + record + `: swordfish}}}}}`, `{kind: X, spec: {item: {kind: Secret, metadata: {}}}}`,
			[]placementv1.PatchDetail{{Path: "/spec/item/metadata/annotations", ValueInMember: Redacted}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := object(t, tc.hub)
			if diff := cmp.Diff(tc.want, Compare(object(t, tc.member), hub, hub, false)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
