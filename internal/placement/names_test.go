package placement

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestBindingName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := Key{Name: rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,22}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?)?`).Draw(t, "placement")}
		cluster := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?`).Draw(t, "cluster")
		name := BindingName(k, cluster)
		if name != BindingName(k, cluster) {
			t.Fatal("another name at the second time")
		}
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 || len(name) > validation.DNS1123LabelMaxLength {
			t.Fatalf("%q is no name: %v", name, problems)
		}
	})
	if name := BindingName(Key{Name: "app"}, "paris"); !strings.HasPrefix(name, "app-paris-") || len(name) != len("app-paris-")+8 {
		t.Errorf("name %q, want placement, cluster and 8 characters", name)
	}
}

// With 32 bits, about a hundred of so many clusters would share a name with another.
func TestBindingNamesOfAFleetDiffer(t *testing.T) {
	t.Parallel()
	const clusters = 1_000_000
	seen := make(map[string]bool, clusters)
	for i := range clusters {
		seen[BindingName(Key{Name: "app"}, fmt.Sprint("a-prefix-that-all-clusters-share-", i))] = true
	}
	if len(seen) < clusters-5 {
		t.Errorf("%d of %d clusters share the name of their binding with another", clusters-len(seen), clusters)
	}
}

func TestPolicySnapshotPlacement(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		PolicySnapshotName("app", 0): "app", PolicySnapshotName("app-3", 12): "app-3",
		"app": "", "app-x": "", "app-01": "", "": "",
	} {
		if got := PolicySnapshotPlacement(name); got != want {
			t.Errorf("%q is of placement %q, want %q", name, got, want)
		}
	}
}
