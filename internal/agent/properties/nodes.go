package properties

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// settle is for how long changes are gathered before they are told of: a rollout changes pods many times a second.
const settle = 10 * time.Second

// Builtin counts nodes and adds up what they have, give, and have left. Its figures cover all pods, however many.
type Builtin struct {
	// Member reaches the cluster.
	Member *rest.Config
	// Clock is the clock.
	Clock clock.WithTicker

	tally tally
	dirty chan struct{}
}

// NewBuiltin makes the provider that works in every cluster.
func NewBuiltin(member *rest.Config, c clock.WithTicker) *Builtin {
	return &Builtin{
		Member: member, Clock: c, dirty: make(chan struct{}, 1),
		tally: tally{nodes: map[types.UID]nodeFigures{}, pods: map[types.UID]podFigures{}},
	}
}

// Name says what is looked at.
func (b *Builtin) Name() string { return "nodes and pods" }

// Run watches nodes and the pods on them.
func (b *Builtin) Run(ctx context.Context, say func(Report, error)) error {
	core, err := coreClient(b.Member)
	if err != nil {
		return err
	}
	// Pods that ended, or wait for a node, take nothing: the API server leaves them out.
	running := fields.AndSelectors(
		fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	v := &voice{tally: &b.tally, say: say, failing: map[string]error{}}
	nodes := cache.NewReflectorWithOptions(v.attentive(ctx, core, "nodes", fields.Everything()),
		&corev1.Node{}, &nodeStore{tally: &b.tally, changed: b.mark}, cache.ReflectorOptions{Name: "nodes of the member"})
	pods := cache.NewReflectorWithOptions(v.attentive(ctx, core, "pods", running),
		&corev1.Pod{}, &podStore{tally: &b.tally, changed: b.mark}, cache.ReflectorOptions{Name: "pods of the member"})
	var watching sync.WaitGroup
	watching.Go(func() { nodes.RunWithContext(ctx) })
	watching.Go(func() { pods.RunWithContext(ctx) })
	b.gather(ctx, v)
	watching.Wait()
	return nil
}

// mark says that something has changed.
func (b *Builtin) mark() {
	select {
	case b.dirty <- struct{}{}:
	default:
	}
}

// gather tells of changes: of the first whole picture at once, of others when they have been gathered for a while.
func (b *Builtin) gather(ctx context.Context, v *voice) {
	known := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.dirty:
		}
		if known {
			select {
			case <-ctx.Done():
				return
			case <-b.Clock.After(settle):
			}
			select { // what came in the meantime is told of now
			case <-b.dirty:
			default:
			}
		}
		known = v.speak()
	}
}

// voice says what is known of nodes and pods, as long as both can be read.
type voice struct {
	tally *tally
	say   func(Report, error)

	mu      sync.Mutex
	failing map[string]error
}

// speak says it, and tells whether anything is known.
func (v *voice) speak() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	report, known := v.tally.report()
	var troubles []string
	for _, what := range slices.Sorted(maps.Keys(v.failing)) {
		troubles = append(troubles, v.failing[what].Error())
	}
	switch {
	case len(troubles) > 0:
		v.say(Report{}, errors.New(strings.Join(troubles, "; ")))
	case known:
		v.say(report, nil)
	}
	return known
}

// attentive lists and watches a resource, and says when that does not go.
func (v *voice) attentive(ctx context.Context, core rest.Interface, what string, selector fields.Selector) *cache.ListWatch {
	lw := cache.NewListWatchFromClient(core, what, "", selector)
	return attentive(ctx, lw.ListWithContext, lw.WatchWithContext, func(err error) {
		v.mu.Lock()
		delete(v.failing, what)
		if err != nil {
			v.failing[what] = fmt.Errorf("read %s: %w", what, err)
		}
		v.mu.Unlock()
		v.speak()
	})
}

// coreClient reads the core API in its compact encoding.
func coreClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion = "/api", &corev1.SchemeGroupVersion
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("make a client for the member's nodes and pods: %w", err)
	}
	return client, nil
}
