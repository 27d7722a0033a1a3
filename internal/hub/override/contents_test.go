package override

import (
	"fmt"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/types"
)

// What many placements hold is remembered, of each what its newest snapshot does, within a limit.
func TestContents(t *testing.T) {
	t.Parallel()
	objects := []placementv1.ResourceIdentifier{{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"}}
	key := func(i int) placement.Key { return placement.Key{Name: fmt.Sprint(i)} }
	known := func(c *contents, revision string) (n int) {
		for i := range 1000 {
			if got, ok := c.get(key(i), types.UID(fmt.Sprint(i, revision))); ok && len(got) == 1 {
				n++
			}
		}
		return n
	}
	var c contents
	if _, ok := c.get(key(0), ""); ok {
		t.Error("what was never read is known")
	}
	for _, revision := range []string{"old", "new"} {
		for i := range 1000 {
			c.add(key(i), types.UID(fmt.Sprint(i, revision)), objects)
		}
	}
	if n, old := known(&c, "new"), known(&c, "old"); n != 1000 || old != 0 || c.bytes != 1000*sizeOf(objects) {
		t.Errorf("of 1000 placements %d new and %d old contents are known, %d bytes", n, old, c.bytes)
	}
	c.limit = 10 * sizeOf(objects)
	c.add(key(0), "0last", objects)
	if n := len(c.all); n != 10 || c.bytes != c.limit || known(&c, "last") != 1 {
		t.Errorf("%d contents of %d bytes are kept, where there is room for 10 and the last is one of them", n, c.bytes)
	}
}
