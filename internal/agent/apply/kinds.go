package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// errUnknownKind is the answer for a kind that the member does not serve.
var errUnknownKind = errors.New("unknown kind")

// kinds finds the resources of kinds. It asks the member for the API versions in use, one at a time, and keeps no others:
// a member may serve hundreds of kinds that nobody places.
type kinds struct {
	client discovery.DiscoveryInterfaceWithContext

	mu       sync.Mutex
	versions map[schema.GroupVersion]map[string]resource // API version → kind → resource
	epoch    int                                         // how often everything was forgotten
	absent   map[schema.GroupVersionKind]time.Time       // kinds that were not there when recall asked last, and when that was
}

// absence is how long a kind that was not there is taken as missing, where no definition has changed: what the member says that it
// serves comes a little after the definition.
const absence = 30 * time.Second

// discoveryWithin is how long the member may take to say what it serves. Passes wait for it, and who wants them to end waits
// for those.
const discoveryWithin = 10 * time.Second

// resource is where the objects of a kind are.
type resource struct {
	schema.GroupVersionResource
	namespaced bool
}

// find returns the resource of a kind. A kind that was not there before is asked for again: its definition may have come.
// The member is asked while nothing is locked: what one Work asks for holds up no other.
func (k *kinds) find(ctx context.Context, gvk schema.GroupVersionKind) (resource, error) {
	gv := gvk.GroupVersion()
	k.mu.Lock()
	r, known := k.versions[gv][gvk.Kind]
	epoch := k.epoch
	k.mu.Unlock()
	if known {
		return r, nil
	}
	ctx, stop := context.WithTimeout(ctx, discoveryWithin)
	defer stop()
	list, err := k.client.ServerResourcesForGroupVersionWithContext(ctx, gv.String())
	if apierrors.IsNotFound(err) {
		k.learn(epoch, gv, nil)
		return resource{}, errUnknownKind
	}
	if err != nil {
		return resource{}, fmt.Errorf("ask the member what it serves of %s: %w", gv, err)
	}
	byKind := map[string]resource{}
	for i := range list.APIResources {
		if r := &list.APIResources[i]; !strings.Contains(r.Name, "/") {
			byKind[r.Kind] = resource{gv.WithResource(r.Name), r.Namespaced}
		}
	}
	k.learn(epoch, gv, byKind)
	if r, known := byKind[gvk.Kind]; known {
		return r, nil
	}
	return resource{}, errUnknownKind
}

// recall is find for who asks often and can do without the kind: that it was not there is remembered for a while.
func (k *kinds) recall(ctx context.Context, gvk schema.GroupVersionKind, now time.Time) (resource, error) {
	k.mu.Lock()
	known, there := k.versions[gvk.GroupVersion()][gvk.Kind]
	since, missed := k.absent[gvk]
	epoch := k.epoch
	k.mu.Unlock()
	if there {
		return known, nil
	}
	if missed && now.Sub(since) < absence {
		return resource{}, errUnknownKind
	}
	r, err := k.find(ctx, gvk)
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.absent, gvk); errors.Is(err, errUnknownKind) && epoch == k.epoch {
		if k.absent == nil {
			k.absent = map[schema.GroupVersionKind]time.Time{}
		}
		k.absent[gvk] = now
	}
	return r, err
}

// learn keeps what the member serves of an API version, nil where it does not serve that, unless everything was forgotten
// since it was asked.
func (k *kinds) learn(epoch int, gv schema.GroupVersion, byKind map[string]resource) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case epoch != k.epoch:
	case byKind == nil:
		delete(k.versions, gv)
	default:
		k.versions[gv] = byKind
	}
}

// served finds a version in which the member serves a kind, whichever that is.
func (k *kinds) served(ctx context.Context, kind schema.GroupKind) (resource, error) {
	within, stop := context.WithTimeout(ctx, discoveryWithin)
	defer stop()
	groups, err := k.client.ServerGroupsWithContext(within)
	if err != nil {
		return resource{}, fmt.Errorf("ask the member which API groups it serves: %w", err)
	}
	for i := range groups.Groups {
		group := &groups.Groups[i]
		if group.Name != kind.Group {
			continue
		}
		for _, version := range group.Versions {
			if r, err := k.find(ctx, kind.WithVersion(version.Version)); !errors.Is(err, errUnknownKind) {
				return r, err
			}
		}
	}
	return resource{}, errUnknownKind
}

// forget asks anew for everything: a definition was added, changed or removed.
func (k *kinds) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.versions)
	clear(k.absent)
	k.epoch++
}

// collector gathers the warnings with which the member answers one request.
type collector struct {
	mu    sync.Mutex
	texts []string
}

type collectorKey struct{}

// collect returns a context for a request, and what gathers the warnings of its answer.
func collect(ctx context.Context) (context.Context, *collector) {
	c := &collector{}
	return context.WithValue(ctx, collectorKey{}, c), c
}

// warnings hands the member's warnings to who collects them. Those of other requests are dropped: a deprecated API version
// in a user's manifest is not the agent's to log.
type warnings struct{}

func (warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _ string, text string) {
	if c, ok := ctx.Value(collectorKey{}).(*collector); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.texts = append(c.texts, text)
	}
}
