package placement_test

import (
	"testing"

	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return o
}

func TestSanitize(t *testing.T) {
	cases := map[string]struct{ object, want string }{
		"what an API server keeps for itself goes, what its author wrote stays": {
			object: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}, status: {replicas: 1},
			  metadata: {name: web, namespace: demo, uid: u, resourceVersion: "7", generation: 3, selfLink: /x, generateName: we,
			    creationTimestamp: "2026-01-01T00:00:00Z", deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 3,
			    managedFields: [{manager: m}], ownerReferences: [{kind: X, name: x, uid: y, apiVersion: v1}], finalizers: [example.com/f],
			    labels: {app: web}, annotations: {note: mine, deployment.kubernetes.io/revision: "3", kubectl.kubernetes.io/last-applied-configuration: "{}"}}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2},
			  metadata: {name: web, namespace: demo, generateName: we, finalizers: [example.com/f], labels: {app: web}, annotations: {note: mine}}}`,
		},
		"what the hub and Kruise note on it goes, what its author says to Kruise stays": {
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {rollouts.kruise.io/workload-type: deployment, rollouts.kruise.io/rollout-id: mine},
			  annotations: {rollouts.kruise.io/in-progressing: "{}", batchrelease.rollouts.kruise.io/control-info: "{}", fleetwright.io/in-release: "a,b", fleetwright.io/delete-in-release: "true"}}}`,
			want: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {rollouts.kruise.io/rollout-id: mine}, annotations: {fleetwright.io/delete-in-release: "true"}}}`,
		},
		"annotations that become empty go": {
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}}`,
			want:   `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
		},
		"a namespace keeps its spec": {
			object: `{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`,
			want:   `{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {kubernetes.io/metadata.name: a}}, spec: {finalizers: [kubernetes]}}`,
		},
		"a service loses what each cluster allots": {
			object: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], healthCheckNodePort: 30001, type: LoadBalancer, ports: [{port: 80, nodePort: 30000}, {port: 81}]}}`,
			want:   `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, ports: [{port: 80}, {port: 81}]}}`,
		},
		"a headless service stays headless": {
			object: `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			want:   `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		"another group's service is left alone": {
			object: `{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`,
			want:   `{apiVersion: serving.knative.dev/v1, kind: Service, metadata: {name: a}, spec: {clusterIP: 10.0.0.1}}`,
		},
		"a job loses the selector that was generated for it": {
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}},
			  template: {metadata: {labels: {app: a, controller-uid: u, batch.kubernetes.io/controller-uid: u}}}}}`,
			want: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {metadata: {labels: {app: a}}}}}`,
		},
		"a job keeps a selector that its author manages": {
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u}}}}}`,
			want:   `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u}}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := fromYAML(t, tc.object)
			placement.Sanitize(o)
			if diff := cmp.Diff(fromYAML(t, tc.want).Object, o.Object); diff != "" {
				t.Errorf("unexpected object (-want +got):\n%s", diff)
			}
			again := o.DeepCopy()
			placement.Sanitize(again)
			if diff := cmp.Diff(o.Object, again.Object); diff != "" {
				t.Errorf("a second time changes it (-first +second):\n%s", diff)
			}
		})
	}
}
