package health

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	const (
		yes     = placementv1.ReasonManifestAvailable
		notYet  = placementv1.ReasonManifestNotAvailableYet
		failed  = placementv1.ReasonManifestAvailabilityFailed
		unknown = placementv1.ReasonManifestNotTrackable
	)
	for name, tc := range map[string]struct{ object, want, message string }{
		"a ConfigMap":         {`{apiVersion: v1, kind: ConfigMap}`, yes, "Manifest is available"},
		"a deleted ConfigMap": {`{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: "2026-01-01T10:00:00Z"}}`, notYet, "Manifest is not yet available: somebody deleted it in the member at 10:00:00 UTC; it is made again when it is gone"},
		"a Deployment that nobody has seen": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 2}, status: {observedGeneration: 1}}`,
			notYet, "Manifest is not yet available: its controller has not seen generation 2"},
		"a Deployment with old pods": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 3}}`,
			notYet, "Manifest is not yet available: 2 of 3 replicas are updated"},
		"a Deployment that somebody has paused": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3, paused: true}, status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 3}}`,
			placementv1.ReasonManifestPaused, "Manifest is not yet available: it is paused with 2 of 3 replicas updated, until somebody sets its spec.paused to false"},
		"a Deployment that a Kruise Rollout updates": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1, annotations: {rollouts.kruise.io/in-progressing: "{}"}}, spec: {replicas: 4, paused: true}, status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 4}}`,
			placementv1.ReasonManifestUpdatedByRollout, "Manifest is not yet available: a Kruise Rollout updates it, and 2 of 4 replicas are updated"},
		"a Deployment that a Kruise Rollout updates, with pods that do not come up": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1, annotations: {batchrelease.rollouts.kruise.io/control-info: "{}"}}, spec: {replicas: 4, paused: true}, status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 2}}`,
			notYet, "Manifest is not yet available: 2 of 4 replicas are available"},
		"a StatefulSet whose update is held at a partition": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, status: {observedGeneration: 1, availableReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`,
			placementv1.ReasonManifestPaused, "Manifest is not yet available: 1 of 3 replicas are updated, and the others are held by its updateStrategy, until somebody lowers rollingUpdate.partition"},
		"a StatefulSet that has yet to come to its partition": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {observedGeneration: 1, availableReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`,
			notYet, "Manifest is not yet available: 1 of 3 replicas are updated"},
		"a StatefulSet that waits for its pods to be deleted": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, availableReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`,
			placementv1.ReasonManifestPaused, "Manifest is not yet available: 1 of 3 replicas are updated, and the others are held by its updateStrategy, until somebody deletes their pods"},
		"a DaemonSet that waits for its pods to be deleted": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, desiredNumberScheduled: 2, numberAvailable: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1}}`,
			placementv1.ReasonManifestPaused, "Manifest is not yet available: 1 of 2 pods are updated, and the others are held by its updateStrategy, until somebody deletes them"},
		"a paused Deployment with pods that are not available": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3, paused: true}, status: {observedGeneration: 1, updatedReplicas: 3, availableReplicas: 2}}`,
			notYet, "Manifest is not yet available: 2 of 3 replicas are available"},
		"a Deployment with pods that are not available": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, updatedReplicas: 3, availableReplicas: 2}}`,
			notYet, "Manifest is not yet available: 2 of 3 replicas are available"},
		"a Deployment that surges": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, status: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1, unavailableReplicas: 1}}`,
			notYet, "Manifest is not yet available: 1 replicas are unavailable"},
		"a Deployment that is stuck": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: no image}]}}`,
			failed, "The Deployment has not progressed within its deadline: no image"},
		"a Deployment": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {generation: 1}, status: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1}}`, yes, "Manifest is available"},
		"a StatefulSet between revisions": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, status: {observedGeneration: 1, availableReplicas: 1, currentReplicas: 1, updatedReplicas: 1, currentRevision: a, updateRevision: b}}`,
			notYet, "Manifest is not yet available: 1 of 1 replicas are updated"},
		"a StatefulSet": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, status: {observedGeneration: 1, availableReplicas: 1, currentReplicas: 1, updatedReplicas: 1, currentRevision: b, updateRevision: b}}`, yes, "Manifest is available"},
		"a DaemonSet with old pods": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 2, numberAvailable: 2, currentNumberScheduled: 2, updatedNumberScheduled: 1}}`,
			notYet, "Manifest is not yet available: 1 of 2 pods are updated"},
		"a DaemonSet without nodes": {
			`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1}, status: {observedGeneration: 1}}`, yes, "Manifest is available"},
		"a Service":                  {`{apiVersion: v1, kind: Service, spec: {clusterIP: 10.0.0.1}}`, yes, "Manifest is available"},
		"a headless Service":         {`{apiVersion: v1, kind: Service, spec: {clusterIP: None}}`, yes, "Manifest is available"},
		"a Service without address":  {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}}`, notYet, "Manifest is not yet available: the load balancer has no address yet"},
		"a Service with an address":  {`{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, yes, "Manifest is available"},
		"a Service by external name": {`{apiVersion: v1, kind: Service, spec: {type: ExternalName}}`, unknown, "Nothing tells whether the object is available; it is taken as available"},
		"a definition": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "True"}]}}`,
			notYet, "Manifest is not yet available: its condition Established is not True"},
		"a PodDisruptionBudget nobody has seen": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}}`,
			notYet, "Manifest is not yet available: its controller has not seen generation 1"},
		"a Job that has not ended": {
			`{apiVersion: batch/v1, kind: Job, status: {active: 1, conditions: []}}`, notYet, "Manifest is not yet available: Job not started"},
		"a Job that runs": {
			`{apiVersion: batch/v1, kind: Job, status: {active: 1, startTime: "2026-01-01T10:00:00Z"}}`, yes, "Manifest is available"},
		"a Job that has failed": {
			`{apiVersion: batch/v1, kind: Job, status: {failed: 1, conditions: [{type: Failed, status: "True"}]}}`, failed, "It has failed: Job Failed. failed: 1/1"},
		"a Job that its author holds": {
			`{apiVersion: batch/v1, kind: Job, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True"}]}}`,
			unknown, "Nothing tells whether the object is available; it is taken as available: the Job is suspended"},
		"a CronJob": {`{apiVersion: batch/v1, kind: CronJob}`, yes, "Manifest is available"},
		"a ReplicaSet that is not ready": {
			`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, fullyLabeledReplicas: 2, availableReplicas: 1, readyReplicas: 1}}`,
			notYet, "Manifest is not yet available: Available: 1/2"},
		"a claim that is bound": {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, yes, "Manifest is available"},
		"a claim that waits":    {`{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, unknown, ""},
		"a claim that has lost": {`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: disk}, status: {phase: Lost}}`, failed, `The volume "disk" of the claim is lost`},
		"a volume":              {`{apiVersion: v1, kind: PersistentVolume, status: {phase: Available}}`, unknown, ""},
		"an Ingress":            {`{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {}}}`, unknown, ""},
		"an autoscaler":         {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {currentReplicas: 1}}`, unknown, ""},
		"a definition that is served": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`,
			yes, "Manifest is available"},
		"a PodDisruptionBudget": {
			`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [{type: DisruptionAllowed, status: "False", observedGeneration: 1}]}}`,
			yes, "Manifest is available"},
		"a custom resource that is ready": {
			`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "True"}]}}`, yes, "Manifest is available"},
		"a custom resource that is stalled": {
			`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Stalled, status: "True", message: no quota}]}}`, failed, "It has failed: no quota"},
		"a custom resource whose controller is behind": {
			`{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 2}, status: {observedGeneration: 1}}`, notYet, ""},
		"a custom resource whose status tells nothing": {
			`{apiVersion: example.com/v1, kind: Widget, status: {color: red}}`, unknown, "Nothing tells whether the object is available; it is taken as available"},
		"a custom resource without a status": {`{apiVersion: example.com/v1, kind: Widget}`, unknown, "Nothing tells whether the object is available; it is taken as available"},
		"a custom resource that is not ready": {
			`{apiVersion: example.com/v1, kind: Widget, status: {conditions: [{type: Ready, status: "False", reason: Slow, message: starting}]}}`,
			notYet, "Manifest is not yet available: starting"},
		"a status of another shape": {
			`{apiVersion: apps/v1, kind: Deployment, status: {replicas: many}}`, failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{}
			raw, err := yaml.YAMLToJSON([]byte(tc.object))
			if err != nil {
				t.Fatal(err)
			}
			if err := object.UnmarshalJSON(raw); err != nil {
				t.Fatal(err)
			}
			got := Judge(object)
			if got.Reason != tc.want || got.Available != (tc.want == yes || tc.want == unknown) {
				t.Errorf("got %+v, want reason %s", got, tc.want)
			}
			if tc.message != "" {
				if diff := cmp.Diff(tc.message, got.Message); diff != "" {
					t.Errorf("message (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestKindsThatAreAvailableAtOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{
		"/Namespace", "/Secret", "/ConfigMap", "/ServiceAccount", "/LimitRange", "/ResourceQuota",
		"rbac.authorization.k8s.io/Role", "rbac.authorization.k8s.io/ClusterRole", "rbac.authorization.k8s.io/RoleBinding",
		"rbac.authorization.k8s.io/ClusterRoleBinding", "networking.k8s.io/NetworkPolicy", "networking.k8s.io/IngressClass",
		"storage.k8s.io/CSIDriver", "storage.k8s.io/CSINode", "storage.k8s.io/StorageClass", "storage.k8s.io/CSIStorageCapacity",
		"apps/ControllerRevision", "scheduling.k8s.io/PriorityClass",
	} {
		group, name, _ := strings.Cut(kind, "/")
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: name})
		if got := Judge(o); got.Reason != placementv1.ReasonManifestAvailable || !AtOnce(o.GroupVersionKind().GroupKind()) {
			t.Errorf("%s: got %+v", kind, got)
		}
	}
}
