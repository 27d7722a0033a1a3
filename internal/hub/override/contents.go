package override

import (
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/types"
)

// maxContents is how many bytes the names of objects may have that are remembered. Those of ten thousand placements with twenty
// objects each fit.
const maxContents = 32 << 20

// contents remember, of each placement, which objects the resource snapshot holds that was asked for last: it is asked for again
// on each look at the placement. Its zero value is ready for use, and it may be used by several goroutines at once.
type contents struct {
	mu    sync.Mutex
	all   map[placement.Key]content
	bytes int
	// limit stands for maxContents where it is not 0.
	limit int
}

type content struct {
	uid     types.UID // of the master resource snapshot
	objects []placementv1.ResourceIdentifier
	bytes   int
}

func (c *contents) get(key placement.Key, uid types.UID) (objects []placementv1.ResourceIdentifier, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.all[key]
	return found.objects, found.uid == uid && uid != ""
}

// add remembers what a snapshot holds, in place of what an earlier one of the placement held. Where that is too much, some others
// are forgotten; which, does not matter: no order of looks then makes all of them be read again.
func (c *contents) add(key placement.Key, uid types.UID, objects []placementv1.ResourceIdentifier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[placement.Key]content{}
	}
	limit := c.limit
	if limit == 0 {
		limit = maxContents
	}
	added := content{uid: uid, objects: objects, bytes: sizeOf(objects)}
	c.forget(key)
	for other := range c.all {
		if c.bytes+added.bytes <= limit {
			break
		}
		c.forget(other)
	}
	c.all[key] = added
	c.bytes += added.bytes
}

func (c *contents) forget(key placement.Key) {
	c.bytes -= c.all[key].bytes
	delete(c.all, key)
}

// sizeOf is about how much memory a list takes up.
func sizeOf(objects []placementv1.ResourceIdentifier) int {
	const headers = 128
	size := headers
	for i := range objects {
		o := &objects[i]
		size += headers + len(o.Group) + len(o.Version) + len(o.Kind) + len(o.Namespace) + len(o.Name)
	}
	return size
}
