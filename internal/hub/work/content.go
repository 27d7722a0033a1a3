package work

import (
	"context"
	"fmt"
	"sync"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// contentLimit is how many bytes of snapshot content are kept for the next cluster.
	contentLimit = 32 << 20
	// contentIdle is how long content is kept that no cluster has asked for.
	contentIdle = 30 * time.Second
)

// contents reads the content of resource snapshots. A snapshot that a thousand clusters move to at once is read once.
// What is kept is bounded, and nothing is kept while nothing moves. The content is shared and must not be changed.
type contents struct {
	reader   client.Reader // live: the cache has no content
	carriage *placement.Carriage
	clock    clock.Clock

	flight singleflight.Group
	filled chan struct{} // holds one where something is kept that run has not been told of
	mu     sync.Mutex
	kept   map[types.UID]*keptContent
	bytes  int
}

func newContents(reader client.Reader, carriage *placement.Carriage, c clock.Clock) *contents {
	return &contents{reader: reader, carriage: carriage, clock: c, filled: make(chan struct{}, 1)}
}

type keptContent struct {
	resources []placementv1.ResourceContent
	bytes     int
	used      time.Time
}

// get returns the content of the snapshot object with a name and a UID.
func (c *contents) get(ctx context.Context, key client.ObjectKey, uid types.UID) ([]placementv1.ResourceContent, error) {
	if resources, ok := c.lookup(uid); ok {
		return resources, nil
	}
	return c.fetch(ctx, key, uid)
}

// fetch is for one who did not find the content.
func (c *contents) fetch(ctx context.Context, key client.ObjectKey, uid types.UID) ([]placementv1.ResourceContent, error) {
	read, err, _ := c.flight.Do(string(uid), func() (any, error) {
		if resources, ok := c.lookup(uid); ok { // another flight has landed since we looked
			return resources, nil
		}
		return c.read(ctx, key, uid)
	})
	if err != nil {
		return nil, err
	}
	resources, _ := read.([]placementv1.ResourceContent)
	return resources, nil
}

func (c *contents) read(ctx context.Context, key client.ObjectKey, uid types.UID) ([]placementv1.ResourceContent, error) {
	s := c.carriage.NewResourceSnapshot()
	err := c.reader.Get(ctx, key, s)
	if apierrors.IsNotFound(err) || (err == nil && s.GetUID() != uid) {
		return nil, &missingError{snapshot: key.Name}
	}
	if err != nil {
		return nil, fmt.Errorf("read the content of resource snapshot %s: %w", key.Name, err)
	}
	resources := s.ResourceSnapshotSpec().SelectedResources
	c.keep(uid, resources)
	return resources, nil
}

func (c *contents) lookup(uid types.UID) ([]placementv1.ResourceContent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept[uid]
	if !ok {
		return nil, false
	}
	k.used = c.clock.Now()
	return k.resources, true
}

// keep keeps content for others, and lets go of what was used longest ago where it would become too much.
func (c *contents) keep(uid types.UID, resources []placementv1.ResourceContent) {
	size := 0
	for i := range resources {
		size += len(resources[i].Raw)
	}
	if size > contentLimit {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = map[types.UID]*keptContent{}
	}
	c.drop(uid)
	for c.bytes+size > contentLimit {
		c.drop(c.oldest())
	}
	if len(c.kept) == 0 {
		select {
		case c.filled <- struct{}{}:
		default: // it will look
		}
	}
	c.kept[uid] = &keptContent{resources: resources, bytes: size, used: c.clock.Now()}
	c.bytes += size
}

// run lets go of what nobody asks for, until the hub stops. While nothing is kept, it sleeps.
func (c *contents) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.filled:
		}
		for empty := false; !empty; {
			select {
			case <-ctx.Done():
				return nil
			case <-c.clock.After(contentIdle):
				empty = c.sweep()
			}
		}
	}
}

// sweep drops idle content and tells whether nothing is left.
func (c *contents) sweep() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, k := range c.kept {
		if c.clock.Since(k.used) >= contentIdle {
			c.drop(uid)
		}
	}
	return len(c.kept) == 0
}

func (c *contents) oldest() types.UID {
	var oldest types.UID
	for uid, k := range c.kept {
		if oldest == "" || k.used.Before(c.kept[oldest].used) {
			oldest = uid
		}
	}
	return oldest
}

func (c *contents) drop(uid types.UID) {
	if k, ok := c.kept[uid]; ok {
		c.bytes -= k.bytes
		delete(c.kept, uid)
	}
}
