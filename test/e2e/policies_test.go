package e2e

import (
	"fmt"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	rolloutsv1beta1 "github.com/fleetwright/fleetwright/api/rollouts/v1beta1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/quickstart"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// shop is the second seed's application, in a namespace of its own.
type shop struct {
	t       *testing.T
	ns      string
	hub     client.WithWatch
	members map[string]client.WithWatch
}

func newShop(t *testing.T, ns string) *shop {
	t.Helper()
	s := &shop{t: t, ns: ns, hub: clientFor(t, fleet, "hub"), members: map[string]client.WithWatch{}}
	for _, name := range fleet.Names() {
		s.members[name] = clientFor(t, fleet, name)
	}
	create(t, s.hub, namespace(ns))
	return s
}

func (s *shop) policy(name, apiVersion, kind, object string, where policyv1alpha1.Placement) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: apiVersion, Kind: kind, Name: object}}, Placement: where,
		},
	}
}

// byRoom divides replicas among clusters by the room that they have.
func byRoom(clusters ...string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{
		ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.Divided, ReplicaDivisionPreference: policyv1alpha1.Weighted,
			WeightPreference: &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
		},
	}
}

func (s *shop) deployment(replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": "web-demo"}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web-demo", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "web-demo", Image: "web-demo:1", Env: []corev1.EnvVar{{Name: "ENV_NAME", Value: "v1"}},
				Resources: corev1.ResourceRequirements{Requests: cpu, Limits: cpu},
			}}}},
		},
	}
}

func (s *shop) rollout() *rolloutsv1beta1.Rollout {
	step := func(percent string) rolloutsv1beta1.Step {
		return rolloutsv1beta1.Step{Replicas: ptr.To(intstr.FromString(percent))}
	}
	return &rolloutsv1beta1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "rollouts-demo"},
		Spec: rolloutsv1beta1.RolloutSpec{
			WorkloadRef: rolloutsv1beta1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-demo"},
			Strategy:    rolloutsv1beta1.Strategy{Canary: &rolloutsv1beta1.Steps{Steps: []rolloutsv1beta1.Step{step("50%"), step("100%")}}},
		},
	}
}

func (s *shop) patch(o client.Object, patch string) {
	s.t.Helper()
	if err := s.hub.Patch(s.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.t.Fatalf("change %T %s: %v", o, o.GetName(), err)
	}
}

// shares waits until the members have so many replicas.
func (s *shop) shares(want map[string]int32) {
	s.t.Helper()
	for member, replicas := range want {
		framework.Await(s.t, s.members[member], s.deployment(0), fmt.Sprintf("has %d replicas in %s", replicas, member), func(d *appsv1.Deployment) bool {
			return ptr.Deref(d.Spec.Replicas, 0) == replicas
		})
	}
}

// rests waits until the Rollout of a member is in a phase, and, if a step is given, at that step in that state.
func (s *shop) rests(member, phase string, step int32, state string) {
	s.t.Helper()
	framework.Await(s.t, s.members[member], s.rollout(), fmt.Sprintf("is %s %d %s in %s", phase, step, state, member), func(r *rolloutsv1beta1.Rollout) bool {
		return r.Status.Phase == phase && (step == 0 || r.Status.CurrentStepIndex == step && r.Status.CurrentStepState == state)
	})
}

// updated counts the pods of a member that run a value.
func (s *shop) updated(member, value string) int {
	s.t.Helper()
	var pods corev1.PodList
	if err := s.members[member].List(s.t.Context(), &pods, client.InNamespace(s.ns)); err != nil {
		s.t.Fatal(err)
	}
	count := 0
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() && pods.Items[i].Spec.Containers[0].Env[0].Value == value {
			count++
		}
	}
	return count
}

// approveBatch lets a member's Rollout go on, once Kruise asks for it.
func (s *shop) approveBatch(member string) {
	s.t.Helper()
	r := s.rollout()
	framework.Await(s.t, s.members[member], r, "asks for a person", func(r *rolloutsv1beta1.Rollout) bool {
		return r.Status.CurrentStepState == "StepPaused" && r.Status.Message == "Rollout is in step(1/2), and you need manually confirm to enter the next step"
	})
	patch := `{"status":{"currentStepState":"StepReady","canaryStatus":{"currentStepState":"StepReady"}}}`
	if err := s.members[member].Status().Patch(s.t.Context(), r, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		s.t.Fatalf("approve in %s: %v", member, err)
	}
}

// placementOf is the internal placement of an object.
func (s *shop) placementOf(kind schema.GroupKind, name string) *policyv1alpha1.ObjectPlacement {
	return &policyv1alpha1.ObjectPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: placement.ObjectPlacementName(kind, s.ns, name)}}
}

// TestPoliciesAndBatches walks the second seed: a Deployment that two members share, released in batches, approved in each; and that
// nothing on the hub, neither re-syncs nor restarts, touches a Deployment that Kruise releases.
func TestPoliciesAndBatches(t *testing.T) {
	s := newShop(t, "policies")
	web := create(t, s.hub, s.deployment(0))
	service := create(t, s.hub, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web-demo-svc"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}, Selector: map[string]string{"app": "web-demo"},
	}})
	everywhere := policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.Duplicated}}
	create(t, s.hub, s.policy("web-demo-pp", "apps/v1", "Deployment", "web-demo", byRoom("member1", "member2")))
	create(t, s.hub, s.policy("web-demo-svc-pp", "v1", "Service", "web-demo-svc", everywhere))
	for _, member := range fleet.Names() {
		framework.Await(t, s.members[member], service.DeepCopy(), "is in "+member, func(*corev1.Service) bool { return true })
	}
	s.shares(map[string]int32{"member1": 0, "member2": 0})

	create(t, s.hub, s.policy("web-demo-rollout-pp", "rollouts.kruise.io/v1beta1", "Rollout", "rollouts-demo", everywhere))
	create(t, s.hub, s.rollout())
	s.patch(web, `{"spec":{"replicas":8}}`)
	s.shares(map[string]int32{"member1": 4, "member2": 4})
	for _, member := range []string{"member1", "member2"} {
		s.rests(member, rolloutsv1beta1.PhaseHealthy, 2, "Completed")
	}
	framework.Await(t, s.hub, web, "shows what the members have", func(d *appsv1.Deployment) bool {
		return d.Status.ReadyReplicas == 8 && d.Status.ObservedGeneration == d.Generation
	})

	change := `[{"op":"add","path":"/spec/template/spec/containers/0/env","value":[{"name":"ENV_NAME","value":"v2"}]}]`
	if err := s.hub.Patch(t.Context(), web, client.RawPatch(types.JSONPatchType, []byte(change))); err != nil {
		t.Fatalf("change the Deployment's template: %v", err)
	}
	for _, member := range []string{"member1", "member2"} {
		s.rests(member, rolloutsv1beta1.PhaseProgressing, 1, "StepPaused")
		if got := s.updated(member, "v2"); got != 2 {
			t.Errorf("%d of 4 pods are new in %s, want 2", got, member)
		}
	}
	s.leftAlone("member1")

	s.approveBatch("member2")
	s.rests("member2", rolloutsv1beta1.PhaseHealthy, 2, "Completed")
	if got := s.updated("member1", "v2"); got != 2 {
		t.Errorf("%d pods are new in member1, which nobody approved", got)
	}
	s.approveBatch("member1")
	s.rests("member1", rolloutsv1beta1.PhaseHealthy, 2, "Completed")
	for _, member := range []string{"member1", "member2"} {
		framework.Await(t, s.members[member], s.deployment(0), "is handed back by Kruise", func(d *appsv1.Deployment) bool {
			return !d.Spec.Paused && d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType && d.Status.UpdatedReplicas == 4
		})
	}
	s.patch(web, `{"spec":{"replicas":10}}`)
	s.shares(map[string]int32{"member1": 5, "member2": 5})

	// Deleting the object takes its copies; the namespace that was made for them stays.
	if err := s.hub.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"member1", "member2"} {
		framework.AwaitGone(t, s.members[member], s.deployment(0))
		framework.Await(t, s.members[member], namespace(s.ns), "stays", func(*corev1.Namespace) bool { return true })
	}
}

// leftAlone forces re-syncs and restarts the hub and the member's agent, and sees that the member's Deployment stays as Kruise has it.
func (s *shop) leftAlone(member string) {
	s.t.Helper()
	before := s.deployment(0)
	if err := s.members[member].Get(s.t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		s.t.Fatal(err)
	}
	work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: placement.MemberNamespace(member),
		Name:      placement.WorkName(client.ObjectKeyFromObject(s.placementOf(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web-demo")), 0),
	}}
	for i := range 20 {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"e2e/resync":"%d"}}}`, i))
		if err := s.hub.Patch(s.t.Context(), work, patch); err != nil {
			s.t.Fatalf("have the agent look again: %v", err)
		}
	}
	for _, process := range []string{quickstart.HubProcess, quickstart.AgentProcess + member} {
		sandbox(s.t, "kill", process)
		sandbox(s.t, "start", process)
	}
	// A change that is allowed comes through, which shows that hub and agent have looked since; and it is the only one.
	web := s.deployment(0)
	s.patch(web, `{"metadata":{"labels":{"looked":"again"}}}`)
	framework.Await(s.t, s.members[member], web, "has the new label", func(d *appsv1.Deployment) bool { return d.Labels["looked"] == "again" })
	if web.Generation != before.Generation {
		s.t.Errorf("the Deployment that Kruise releases was changed: generation %d, was %d", web.Generation, before.Generation)
	}
}

// TestTooLittleRoom: where the replicas do not fit, nothing changes in the members, and the status says how much is missing where; a
// policy that cannot mean anything is refused.
func TestTooLittleRoom(t *testing.T) {
	s := newShop(t, "room")
	web := create(t, s.hub, s.deployment(2))
	create(t, s.hub, s.policy("web", "apps/v1", "Deployment", "web-demo", byRoom("member1", "member2")))
	s.shares(map[string]int32{"member1": 1, "member2": 1})
	s.patch(web, `{"spec":{"replicas":1000}}`)
	o := s.placementOf(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "web-demo")
	framework.Await(t, s.hub, o, "says what is missing", func(o *policyv1alpha1.ObjectPlacement) bool {
		return condition(o.Status.Conditions, policyv1alpha1.ConditionScheduled) == "False/"+policyv1alpha1.ReasonUnschedulable
	})
	s.shares(map[string]int32{"member1": 1, "member2": 1})
	s.patch(web, `{"spec":{"replicas":4}}`)
	s.shares(map[string]int32{"member1": 2, "member2": 2})

	wrong := s.policy("wrong", "apps/v1", "Deployment", "web-demo", policyv1alpha1.Placement{
		ClusterAffinity: &policyv1alpha1.ClusterAffinity{}, ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "a"}},
	})
	if err := s.hub.Create(t.Context(), wrong); err == nil {
		t.Error("a policy with two sorts of affinity was taken")
		if err := s.hub.Delete(t.Context(), wrong); err != nil {
			t.Error(err)
		}
	}
}

// TestMovesKeepReady: while replicas move from one member to another, no fewer are ready than are wanted.
func TestMovesKeepReady(t *testing.T) {
	s := newShop(t, "moves")
	web := create(t, s.hub, s.deployment(6))
	policy := create(t, s.hub, s.policy("web", "apps/v1", "Deployment", "web-demo", byRoom("member1")))
	s.shares(map[string]int32{"member1": 6})
	framework.Await(t, s.hub, web, "is ready", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 6 })
	least := s.watchReady(6)
	s.patch(policy, `{"spec":{"placement":{"clusterAffinity":{"clusterNames":["member2"]}}}}`)
	s.shares(map[string]int32{"member2": 6})
	framework.AwaitGone(t, s.members["member1"], s.deployment(0))
	if got := least(); got < 6 {
		t.Errorf("at one moment %d replicas were ready, of 6", got)
	}
}

// watchReady samples how many replicas are ready in all members until the function that it returns is called, which tells the least.
func (s *shop) watchReady(start int32) (least func() int32) {
	s.t.Helper()
	stop, result := make(chan struct{}), make(chan int32, 1)
	go func() {
		lowest := start
		for {
			ready := int32(0)
			for _, member := range fleet.Names() { // what shrinks is looked at before what grows, so that nothing is missed in between
				d := s.deployment(0)
				if err := s.members[member].Get(s.t.Context(), client.ObjectKeyFromObject(d), d); err == nil {
					ready += d.Status.ReadyReplicas
				}
			}
			lowest = min(lowest, ready)
			select {
			case <-stop:
				result <- lowest
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() int32 { close(stop); return <-result }
}

// TestDescheduling: replicas that find no node in their member, which has room for them by the numbers, are moved to others.
func TestDescheduling(t *testing.T) {
	s := newShop(t, "desched")
	member1 := s.members["member1"]
	create(t, member1, namespace(s.ns)) // before the policy would have it made
	var nodes corev1.NodeList
	if err := member1.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web-demo"}
	for i := range nodes.Items { // a pod on each node that keeps those of the Deployment off
		create(t, member1, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "keeps-off-" + nodes.Items[i].Name, Labels: labels},
			Spec:       corev1.PodSpec{NodeName: nodes.Items[i].Name, Containers: []corev1.Container{{Name: "c", Image: "i:1"}}},
		})
	}
	web := s.deployment(4)
	web.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: corev1.LabelHostname,
		}},
	}}
	create(t, s.hub, web)
	create(t, s.hub, s.policy("web", "apps/v1", "Deployment", "web-demo", byRoom("member1", "member2", "member3")))
	s.shares(map[string]int32{"member1": 0, "member2": 2, "member3": 2})
	framework.Await(t, s.hub, web, "is ready", func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas == 4 })
}
