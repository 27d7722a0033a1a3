package selection_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withDeadAPI registers an API group that nothing serves, waits until the API server has found that out, and takes the
// group away again when the test ends.
func withDeadAPI(t *testing.T, c client.WithWatch, group string) *rest.Config {
	t.Helper()
	service := strings.ReplaceAll(group, ".", "-")
	create(t, c, `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.`+group+`}, spec: {group: `+group+
		`, version: v1, groupPriorityMinimum: 100, versionPriority: 10, insecureSkipTLSVerify: true, service: {namespace: default, name: `+service+`}}}`)
	d, err := discovery.NewDiscoveryClientForConfig(hub)
	if err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(func() bool {
		_, _, err := d.ServerGroupsAndResourcesWithContext(t.Context())
		return discovery.IsGroupDiscoveryFailedError(err)
	}).WithTimeout(time.Minute).WithPolling(100*time.Millisecond).Should(BeTrue(), "discovery of "+group+" fails")
	return hub
}
