package apply

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		deployment  = `{apiVersion: apps/v1, kind: Deployment, spec: {`
		releasing   = `{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {rollouts.kruise.io/in-progressing: x}}, spec: {`
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
		"another kind with all of that":           {`{apiVersion: example.com/v1, kind: Deployment, spec: {replicas: 1}}`, `{apiVersion: example.com/v1, kind: Deployment, spec: {replicas: 2}}`, never, ""},
		"a StatefulSet":                           {`{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1}}`, `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2}}`, yes, `{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wanted := parse(t, tc.wanted)
			changed, err := retain(wanted, parse(t, tc.live), tc.autoscaled)
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
