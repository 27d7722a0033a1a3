package properties

import (
	"context"
	"fmt"
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
	Clock  clock.WithTicker

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

// Report returns what is known.
func (b *Builtin) Report() (Report, bool) { return b.tally.report() }

// Start watches nodes and the pods on them.
func (b *Builtin) Start(ctx context.Context, changed func()) error {
	core, err := coreClient(b.Member)
	if err != nil {
		return err
	}
	// Pods that ended, or wait for a node, take nothing: the API server leaves them out.
	running := fields.AndSelectors(
		fields.OneTermNotEqualSelector("spec.nodeName", ""),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	nodes := cache.NewReflectorWithOptions(cache.NewListWatchFromClient(core, "nodes", "", fields.Everything()),
		&corev1.Node{}, &nodeStore{tally: &b.tally, changed: b.mark}, cache.ReflectorOptions{Name: "nodes of the member"})
	pods := cache.NewReflectorWithOptions(cache.NewListWatchFromClient(core, "pods", "", running),
		&corev1.Pod{}, &podStore{tally: &b.tally, changed: b.mark}, cache.ReflectorOptions{Name: "pods of the member"})
	var watching sync.WaitGroup
	watching.Go(func() { nodes.RunWithContext(ctx) })
	watching.Go(func() { pods.RunWithContext(ctx) })
	b.gather(ctx, changed)
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
func (b *Builtin) gather(ctx context.Context, changed func()) {
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
		if _, known = b.Report(); known {
			changed()
		}
	}
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
