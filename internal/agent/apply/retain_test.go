package apply

import (
	"errors"
	"slices"
	"testing"

	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRetain(t *testing.T) {
	t.Parallel()
	const (
		deployment  = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: app}, spec: {`
		rollout     = `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {namespace: app}, spec: {`
		releasing   = `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: app, annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {`
		autoscaler  = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {kind: Deployment, name: `
		serviceText = `{apiVersion: v1, kind: Service, spec: {selector: {`
	)
	yes := func() (bool, error) { return true, nil }
	no := func() (bool, error) { return false, nil }
	never := func() (bool, error) { return false, errors.New("nobody had to ask") }
	for name, tc := range map[string]struct {
		wanted, live string
		autoscaled   func() (bool, error)
		want         string
	}{
		"an autoscaler has the replicas":          {deployment + `replicas: 3}}`, deployment + `replicas: 7}}`, yes, deployment + `replicas: 7}}`},
		"nobody scales it":                        {deployment + `replicas: 3}}`, deployment + `replicas: 7}}`, no, ""},
		"as many as wanted":                       {deployment + `replicas: 3}}`, deployment + `replicas: 3}}`, never, ""},
		"replicas are not said":                   {deployment + `paused: true}}`, deployment + `replicas: 3}}`, never, ""},
		"Kruise holds it":                         {deployment + `paused: false, strategy: {type: RollingUpdate}}}`, releasing + `paused: true, strategy: {type: Recreate}}}`, never, deployment + `paused: true, strategy: {type: Recreate}}}`},
		"Kruise holds it, what is not there":      {deployment + `paused: false}}`, releasing + `replicas: 1}}`, never, deployment + `}}`},
		"Kruise holds it, what is not said":       {deployment + `minReadySeconds: 1}}`, releasing + `paused: true}}`, never, ""},
		"Kruise is done":                          {deployment + `paused: false}}`, deployment + `paused: true}}`, never, ""},
		"Kruise has put the autoscaler aside":     {autoscaler + `web}}}`, autoscaler + `web-DisableByRollout}}}`, never, autoscaler + `web-DisableByRollout}}}`},
		"the autoscaler scales something else":    {autoscaler + `web}}}`, autoscaler + `shop}}}`, never, ""},
		"Kruise keeps the Service on stable pods": {serviceText + `app: web}}}`, serviceText + `app: web, pod-template-hash: x}}}`, never, serviceText + `app: web, pod-template-hash: x}}}`},
		"the Service's selector is another":       {serviceText + `app: web}}}`, serviceText + `app: shop, pod-template-hash: x}}}`, never, ""},
		"the Service's selector has more":         {serviceText + `app: web}}}`, serviceText + `app: web, tier: x}}}`, never, ""},
		"the Service has no selector on the hub":  {`{apiVersion: v1, kind: Service, spec: {ports: []}}`, serviceText + `pod-template-hash: x}}}`, never, ""},
		"Kruise's marks on another kind":          {`{apiVersion: example.com/v1, kind: Deployment, spec: {paused: false}}`, `{apiVersion: example.com/v1, kind: Deployment, metadata: {annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {paused: true}}`, never, ""},
		"another kind that is scaled":             {rollout + `replicas: 1}}`, rollout + `replicas: 2}}`, yes, rollout + `replicas: 2}}`},
		"another kind that nobody scales":         {rollout + `replicas: 1}}`, rollout + `replicas: 2}}`, no, ""},
		"another kind, as many as wanted":         {rollout + `replicas: 1}}`, rollout + `replicas: 1}}`, never, ""},
		"replicas that are no number":             {rollout + `replicas: "1"}}`, rollout + `replicas: "2"}}`, never, ""},
		"nothing set the replicas yet":            {rollout + `replicas: 1}}`, rollout + `paused: true}}`, never, ""},
		"a kind outside of namespaces":            {`{apiVersion: example.com/v1, kind: Pool, spec: {replicas: 1}}`, `{apiVersion: example.com/v1, kind: Pool, spec: {replicas: 2}}`, never, ""},
		"a StatefulSet":                           {`{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: app}, spec: {replicas: 1}}`, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: app}, spec: {replicas: 2}}`, yes, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: app}, spec: {replicas: 2}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted, live := parse(t, tc.wanted), parse(t, tc.live)
			changed, err := retain(wanted, live, kruise.Holds(live.GetAnnotations()), tc.autoscaled)
			if err != nil {
				t.Fatal(err)
			}
			if changed != (tc.want != "") {
				t.Errorf("changed: %t", changed)
			}
			if tc.want == "" {
				tc.want = tc.wanted
			}
			if diff := cmp.Diff(parse(t, tc.want).Object, wanted.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	autoscaler := parse(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: web}}}`)
	aside := parse(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web-DisableByRollout}}}`)
	for what, got := range map[string]bool{
		"what it scales":                       targets(autoscaler, deployments, "web"),
		"what it scales again after a release": targets(aside, deployments, "web"),
		"another name":                         !targets(autoscaler, deployments, "shop"),
		"another kind":                         !targets(autoscaler, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, "web"),
		"another group":                        !targets(autoscaler, schema.GroupKind{Kind: "Deployment"}, "web"),
	} {
		if !got {
			t.Errorf("%s is judged wrongly", what)
		}
	}
}

func TestAutoscalers(t *testing.T) {
	t.Parallel()
	var told []string
	a := newAutoscalers(nil, func(work string) { told = append(told, work) })
	store := &targetStore{listed: a.listed, signals: signals{mark: targetOf, changed: a.event, marks: map[cache.ObjectName]string{}}}
	scaler := func(namespace, target string) any {
		full := parse(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: `+namespace+`}, spec: {maxReplicas: 3, scaleTargetRef: {name: `+target+`}}}`)
		lean, err := store.Transformer()(full)
		if err != nil || targetOf(lean.(metav1.Object)) != targetOf(full) {
			t.Fatalf("kept is %v, error %v", lean, err)
		}
		return lean
	}
	a.follow("web", "app", a.epoch("app"))
	a.follow("shop", "other", a.epoch("other"))
	for _, step := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"the watch begins, and what was there before may be gone", func() error { return store.Replace(nil, "1") }, []string{"shop", "web"}},
		{"one comes", func() error { return store.Add(scaler("app", "x")) }, []string{"web"}},
		{"its status changes", func() error { return store.Update(scaler("app", "x")) }, nil},
		{"it scales something else", func() error { return store.Update(scaler("app", "y")) }, []string{"web"}},
		{"one comes elsewhere", func() error { return store.Add(scaler("third", "x")) }, nil},
		{"the watch begins again", func() error { return store.Replace([]any{scaler("app", "y")}, "2") }, nil},
		{"it goes", func() error { return store.Delete(scaler("app", "y")) }, []string{"web"}},
	} {
		told = nil
		before := a.epoch("app")
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		slices.Sort(told)
		if diff := cmp.Diff(step.want, told); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
		if changed := a.epoch("app") != before; changed != slices.Contains(step.want, "web") {
			t.Errorf("%s: another epoch: %t", step.what, changed)
		}
	}
	told = nil
	a.follow("late", "app", a.epoch("app")-1)
	if diff := cmp.Diff([]string{"late"}, told); diff != "" {
		t.Errorf("one that has read before the last change (-want +got):\n%s", diff)
	}
	told = nil
	a.set("web", nil)
	a.event(cache.ObjectName{Namespace: "app", Name: "a"})
	if diff := cmp.Diff([]string{"late"}, told); diff != "" {
		t.Errorf("one that has left nothing to an autoscaler (-want +got):\n%s", diff)
	}
}

func TestClientSide(t *testing.T) {
	t.Parallel()
	const fields = `fieldsV1: {"f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/last-applied-configuration": {}}}}`
	for name, tc := range map[string]struct {
		annotations, entries string
		want                 []string
	}{
		"kubectl":                          {`{}`, `{manager: kubectl-client-side-apply, operation: Update, fieldsV1: {}}`, []string{"kubectl-client-side-apply"}},
		"one that works as it":             {`{kubectl.kubernetes.io/last-applied-configuration: "{}"}`, `{manager: argocd-controller, operation: Update, ` + fields + `}`, []string{"argocd-controller"}},
		"Helm":                             {`{}`, `{manager: helm, operation: Update, fieldsV1: {}}`, []string{"helm"}},
		"who applies on the server's side": {`{}`, `{manager: kubectl, operation: Apply, fieldsV1: {}}`, nil},
		"who edits":                        {`{}`, `{manager: kubectl-edit, operation: Update, fieldsV1: {"f:data": {}}}`, nil},
		"a controller's status":            {`{}`, `{manager: helm, operation: Update, subresource: status, fieldsV1: {}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {annotations: `+tc.annotations+`, managedFields: [`+tc.entries+`]}}`)
			got := clientSide(live).UnsortedList()
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
