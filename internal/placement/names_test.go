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

// TestWorkNamesDiffer: no two placements, and no two Works of one, share a name in a member's namespace.
func TestWorkNamesDiffer(t *testing.T) {
	t.Parallel()
	id := EnvelopeID("ResourceEnvelope", "shop", "box")
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"shop", "web", "0", "work", "envelope", id})
		key := rapid.Custom(func(t *rapid.T) Key {
			k := Key{Name: word.Draw(t, "name")}
			for range rapid.IntRange(0, 3).Draw(t, "more") {
				k.Name += rapid.SampledFrom([]string{".", "-"}).Draw(t, "joint") + word.Draw(t, "word")
			}
			if rapid.Bool().Draw(t, "in a namespace") {
				k.Namespace = rapid.SampledFrom([]string{"shop", "web", "shop-web", "0"}).Draw(t, "namespace")
			}
			return k
		})
		works := rapid.Custom(func(t *rapid.T) string {
			return rapid.SampledFrom([]string{"part 0", "part 1", "part 2", "envelope"}).Draw(t, "work")
		})
		name := func(k Key, work string) string {
			switch work {
			case "envelope":
				return EnvelopeWorkName(k, id)
			case "part 1":
				return WorkName(k, 1)
			case "part 2":
				return WorkName(k, 2)
			default:
				return WorkName(k, 0)
			}
		}
		k1, k2, w1, w2 := key.Draw(t, "one"), key.Draw(t, "other"), works.Draw(t, "its Work"), works.Draw(t, "the other's")
		n1, n2 := name(k1, w1), name(k2, w2)
		if (n1 == n2) != (k1 == k2 && w1 == w2) {
			t.Fatalf("%s of %s is named %q, %s of %s %q", w1, k1, n1, w2, k2, n2)
		}
		if problems := validation.IsDNS1123Subdomain(n1); len(problems) > 0 {
			t.Fatalf("%q is no name: %v", n1, problems)
		}
	})
	for _, k := range []Key{{Name: "shop.web"}, {Name: "shop.web.0"}, {Name: "shop.web.envelope"}, {Name: "shop.web-0"}} {
		for part := range 3 {
			for other := range 3 {
				if in := (Key{Namespace: "shop", Name: "web"}); WorkName(k, part) == WorkName(in, other) || WorkName(k, part) == EnvelopeWorkName(in, id) {
					t.Errorf("part %d of %s and one of %s are both named %s", part, k, in, WorkName(k, part))
				}
			}
		}
	}
}
