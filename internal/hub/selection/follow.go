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

// follower follows the changes of all objects of one resource, without keeping any.
type follower struct {
	client metadata.Interface
	clock  clock.WithTicker
	gvr    schema.GroupVersionResource
	// begun is called when changes are followed from now on, but those until now may have been missed. exists tells whether
	// there is any object.
	begun func(exists bool)
	// changed is called for each object that was added, changed or deleted from then on.
	changed func(*metav1.PartialObjectMetadata)
}

// run follows until the context ends.
func (f *follower) run(ctx context.Context) {
	patience := backoff()
	for ctx.Err() == nil {
		version, exists, err := f.now(ctx)
		if err == nil {
			f.begun(exists)
			patience = backoff()
			err = f.from(ctx, version)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		log.FromContext(ctx).V(1).Info("Following a resource was interrupted", "resource", f.gvr.String(), "reason", err.Error())
		select {
		case <-ctx.Done():
		case <-f.clock.After(patience.Step()):
		}
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

// from follows the changes since a version. It returns nil when that is too old and the state has to be looked at anew.
func (f *follower) from(ctx context.Context, version string) error {
	for {
		w, err := f.client.Resource(f.gvr).Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		switch {
		case isTooOld(err):
			return nil
		case err != nil:
			return err
		}
		seen, err := f.read(w)
		w.Stop()
		switch {
		case isTooOld(err):
			return nil
		case err != nil || ctx.Err() != nil:
			return err
		case seen == "":
			// Closed before it told anything. A server that does so each time is not asked in a tight loop.
			select {
			case <-ctx.Done():
			case <-f.clock.After(time.Second):
			}
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
