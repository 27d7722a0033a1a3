package await

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func settings(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}, Data: map[string]string{"key": value}}
}

// TestObject makes, changes and deletes an object, each time somebody waits for the next of these.
func TestObject(t *testing.T) {
	t.Parallel()
	var hub client.WithWatch
	step := 0
	// What happens next does once the watch for it stands.
	next := interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (w watch.Interface, err error) {
		if w, err = c.Watch(ctx, list, options...); err != nil {
			return w, err
		}
		step++
		switch step {
		case 1:
			err = c.Create(ctx, settings("1"))
		case 2:
			err = c.Update(ctx, settings("2"))
		case 3:
			err = c.Delete(ctx, settings(""))
		}
		return w, err
	}}
	hub = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(next).Build()
	object, seen := settings(""), []string{}
	err := Object(t.Context(), hub, object, func(exists bool) (bool, error) {
		if !exists {
			seen = append(seen, "none")
			return len(seen) > 1, nil
		}
		seen = append(seen, object.Data["key"])
		return false, nil
	})
	if diff := cmp.Diff([]string{"none", "1", "2", "none"}, seen); diff != "" || err != nil {
		t.Errorf("error %v; seen (-want +got):\n%s", err, diff)
	}
}

func TestObjectErrors(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	get := interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return refused
	}}
	watching := interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
		return nil, refused
	}}
	never := func(bool) (bool, error) { return false, nil }
	for name, tc := range map[string]struct {
		funcs  interceptor.Funcs
		within time.Duration
		done   func(bool) (bool, error)
		want   error
		says   string
	}{
		"it cannot be read":         {funcs: get, done: never, want: refused, says: "read *v1.ConfigMap shop/settings: refused"},
		"it cannot be watched":      {funcs: watching, done: never, want: refused, says: "watch ConfigMap shop/settings: refused"},
		"it is not as it should be": {done: func(bool) (bool, error) { return false, refused }, want: refused, says: "refused"},
		"in vain":                   {within: time.Millisecond, done: never, want: context.DeadlineExceeded, says: "ConfigMap shop/settings: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if tc.within > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.within)
				defer cancel()
			}
			hub := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(tc.funcs).Build()
			if err := Object(ctx, hub, settings(""), tc.done); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got error %v, want one that says %q", err, tc.says)
			}
		})
	}
}
