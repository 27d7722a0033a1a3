package selection

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// seldom is how often a kind is looked at that cannot be watched.
const seldom = 5 * time.Minute

// follower follows the changes of all objects of one resource, without keeping any.
type follower struct {
	client metadata.Interface
	clock  clock.WithTicker
	gvr    schema.GroupVersionResource
	// watchable tells whether the API server lets the resource be watched.
	watchable bool
	// begun is called when changes are followed from now on, but those until now may have been missed. first tells that none
	// were followed before, exists whether there is any object.
	begun func(first, exists bool)
	// changed is called for each object that was added, changed or deleted from then on.
	changed func(*metav1.PartialObjectMetadata)
}

// run follows until the context ends.
func (f *follower) run(ctx context.Context) {
	patience := backoff()
	for first := true; ctx.Err() == nil; {
		if !f.watchable {
			f.begun(first, true) // not even that is known
			first = false
			f.pause(ctx, seldom)
			continue
		}
		version, exists, err := f.now(ctx)
		delivered := false
		if err == nil {
			f.begun(first, exists)
			first = false
			delivered, err = f.from(ctx, version)
		}
		if delivered { // what can be listed alone is no sign that things have got better
			patience = backoff()
		}
		if ctx.Err() != nil || (delivered && isTooOld(err)) {
			continue
		}
		log.FromContext(ctx).V(1).Info("Following a resource was interrupted", "resource", f.gvr.String(), "reason", err.Error())
		f.pause(ctx, patience.Step())
	}
}

// pause waits, but not longer than the context lasts.
func (f *follower) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-f.clock.After(d):
	}
}

func backoff() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 10, Cap: 30 * time.Second}
}

// now returns the version of the resource's state.
func (f *follower) now(ctx context.Context) (version string, exists bool, err error) {
	list, err := f.client.Resource(f.gvr).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", false, err
	}
	return list.GetResourceVersion(), len(list.Items) > 0, nil
}

// from follows the changes since a version until that fails, or the version is too old and the state has to be looked at
// anew. delivered tells whether a watch has told anything; without an error, the context has ended.
func (f *follower) from(ctx context.Context, version string) (delivered bool, err error) {
	for {
		w, err := f.client.Resource(f.gvr).Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			return delivered, err
		}
		seen, err := f.read(w)
		w.Stop()
		delivered = delivered || seen != ""
		switch {
		case err != nil || ctx.Err() != nil:
			return delivered, err
		case seen == "":
			// Closed before it told anything. A server that does so each time is not asked in a tight loop.
			f.pause(ctx, time.Second)
		default:
			version = seen
		}
	}
}

// read reads a watch to its end and returns the last version seen in it.
func (f *follower) read(w watch.Interface) (version string, err error) {
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return version, apierrors.FromObject(event.Object)
		}
		o, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			continue
		}
		version = o.GetResourceVersion()
		if event.Type != watch.Bookmark {
			f.changed(o)
		}
	}
	return version, nil
}

func isTooOld(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }
