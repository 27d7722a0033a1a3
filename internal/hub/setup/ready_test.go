package setup

import (
	"net/http/httptest"
	"testing"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
)

func TestReadyOnceCachesAreRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]bool{"read": true, "not read yet": false} {
		err := synced(&informertest.FakeInformers{Synced: ptr.To(tc)})(httptest.NewRequestWithContext(t.Context(), "GET", "/readyz", nil))
		if (err == nil) != tc {
			t.Errorf("%s: %v", name, err)
		}
	}
}
