package placement_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
)

// awaitFailingDiscovery waits until the API server has found out that it cannot reach one of its groups.
func awaitFailingDiscovery(t *testing.T) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(hub)
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(func() bool {
		_, _, err := d.ServerGroupsAndResourcesWithContext(t.Context())
		return discovery.IsGroupDiscoveryFailedError(err)
	}).WithTimeout(patience).Should(BeTrue())
}
