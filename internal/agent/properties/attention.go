package properties

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// attentive lets a reflector list and watch, and takes note when what it asks is refused, and when it is answered again.
func attentive[L runtime.Object](
	ctx context.Context,
	list func(context.Context, metav1.ListOptions) (L, error), watches func(context.Context, metav1.ListOptions) (watch.Interface, error),
	note func(error),
) *cache.ListWatch {
	failing := false // a reflector asks one thing after another
	answered := func(err error) {
		switch {
		case ctx.Err() != nil, apierrors.IsResourceExpired(err), apierrors.IsGone(err): // stopped, or has to list anew
		case err != nil:
			failing = true
			note(err)
		case failing:
			failing = false
			note(nil)
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			objects, err := list(ctx, o)
			answered(err)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := watches(ctx, o)
			answered(err)
			return w, err
		},
	}
}
