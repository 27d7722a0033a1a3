package membercluster

import (
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatStays(t *testing.T) {
	t.Parallel()
	work := func(namespace, name string) metav1.PartialObjectMetadata {
		labels := map[string]string{}
		if name != "" {
			labels[placementv1.LabelParentPlacement] = name
		}
		if namespace != "" {
			labels[placementv1.LabelParentNamespace] = namespace
		}
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
	}
	for name, tc := range map[string]struct {
		works []metav1.PartialObjectMetadata
		want  string
	}{
		"nothing":                {nil, "nothing that a placement has placed"},
		"somebody else's":        {[]metav1.PartialObjectMetadata{work("", "")}, "nothing that a placement has placed"},
		"parts of one, and more": {[]metav1.PartialObjectMetadata{work("shop", "web"), work("", "b"), work("", "b")}, `ClusterResourcePlacement "b", ResourcePlacement "shop/web"`},
	} {
		if got := whatStays(tc.works); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
