package apply

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history records what the hub was told of Works.
type history struct {
	agent *agent
	mu    sync.Mutex
	told  []string          // reasons of manifests that are not applied
	seen  map[string]uint64 // Work → the version that was recorded last
	more  chan struct{}     // has a token when something was recorded
}

// record records, until the test ends, all that the hub is told of the Works of an agent.
func (a *agent) record() *history {
	a.t.Helper()
	h := &history{agent: a, seen: map[string]uint64{}, more: make(chan struct{}, 1)}
	ctx, stop := context.WithCancel(context.WithoutCancel(a.t.Context()))
	w, err := a.hub.Watch(ctx, &placementv1.WorkList{}, client.InNamespace(a.namespace))
	if err != nil {
		a.t.Fatalf("watch Works: %v", err)
	}
	a.t.Cleanup(func() {
		stop()
		w.Stop()
	})
	go func() {
		for e := range w.ResultChan() {
			if work, ok := e.Object.(*placementv1.Work); ok {
				h.add(work)
			}
		}
	}()
	return h
}

func (h *history) add(work *placementv1.Work) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range work.Status.ManifestConditions {
		if c := meta.FindStatusCondition(m.Conditions, placementv1.ConditionApplied); c != nil && c.Status != metav1.ConditionTrue {
			h.told = append(h.told, work.Name+": "+c.Reason)
		}
	}
	h.seen[work.Name] = versionOf(work)
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// check fails the test if the hub was ever told of a failure, until now.
func (h *history) check(t *testing.T) {
	t.Helper()
	var list placementv1.WorkList
	if err := h.agent.hub.List(t.Context(), &list, client.InNamespace(h.agent.namespace)); err != nil {
		t.Fatalf("list Works: %v", err)
	}
	deadline := time.After(framework.Patience)
	for !h.reaches(list.Items) {
		select {
		case <-h.more:
		case <-deadline:
			t.Fatal("what the hub was told is not recorded")
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if told := slices.Compact(h.told); len(told) > 0 {
		t.Errorf("the hub was told of failures: %v", told)
	}
}

// reaches tells whether all that led to these Works is recorded.
func (h *history) reaches(list []placementv1.Work) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !slices.ContainsFunc(list, func(w placementv1.Work) bool { return h.seen[w.Name] < versionOf(&w) })
}

// testHandOverNewPartFirst is a snapshot whose later part is written before the earlier one: for a moment two Works of one
// placement list the object, which is no failure.
func testHandOverNewPartFirst(t *testing.T) {
	a := startAgent(t, "newpart")
	first := a.create(a.work("newpart", "work", 2, settings("newpart-a", "1"), settings("newpart-b", "1")))
	second := a.create(a.work("newpart", "0", 2, settings("newpart-c", "1")))
	a.await(first, placementv1.ConditionAvailable, available)
	a.await(second, placementv1.ConditionAvailable, available)
	uid := a.live("newpart-b").UID
	told := a.record()
	a.change(second, "1", settings("newpart-b", "1"), settings("newpart-c", "2"))
	framework.Await(t, a.member, settings("newpart-c", ""), "is applied while another object waits", func(cm *corev1.ConfigMap) bool { return cm.Data["key"] == "2" })
	a.change(first, "1", settings("newpart-a", "1"))
	a.await(second, placementv1.ConditionAvailable, available)
	awaitOwner(t, a, "newpart-b", second.Name)
	if got := a.live("newpart-b").UID; got != uid {
		t.Errorf("newpart-b was made anew: UID %s, before %s", got, uid)
	}
	told.check(t)
}

// testHandOverFromDeleted is an object of a part that the new snapshot does not need any more.
func testHandOverFromDeleted(t *testing.T) {
	a := startAgent(t, "surplus")
	first := a.create(a.work("surplus", "work", 2, settings("surplus-a", "1")))
	second := a.create(a.work("surplus", "0", 2, settings("surplus-b", "1"), settings("surplus-c", "1")))
	a.await(first, placementv1.ConditionAvailable, available)
	a.await(second, placementv1.ConditionAvailable, available)
	uid := a.live("surplus-b").UID
	if err := a.hub.Patch(t.Context(), first, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+placementv1.AnnotationWorkCount+`":"1"}}}`))); err != nil {
		t.Fatal(err)
	}
	a.change(first, "1", settings("surplus-a", "1"), settings("surplus-b", "1"))
	a.remove(second, true, "True/ResourcesRemoved")
	a.await(first, placementv1.ConditionAvailable, available)
	awaitOwner(t, a, "surplus-b", first.Name)
	if got := a.live("surplus-b").UID; got != uid {
		t.Errorf("surplus-b was made anew: UID %s, before %s", got, uid)
	}
	framework.AwaitGone(t, a.member, settings("surplus-c", ""))
}

// widgets is the definition of a kind of its own.
func widgets(plural, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{
						"size": map[string]any{"type": "integer"},
					}}},
				}},
			}},
		},
	}}
}

func widget(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "default"}, "spec": spec,
	}}
}

func testDefinitionAlong(t *testing.T) {
	a := startAgent(t, "along")
	told := a.record()
	w := a.create(a.work("along", "work", 1, widget("Gadget", "along-a", map[string]any{"size": int64(1)}), widgets("gadgets", "Gadget")))
	a.await(w, placementv1.ConditionApplied, applied)
	told.check(t)
	// The definition goes with the Work, after the one object of its kind, which was placed.
	a.remove(w, true, "True/ResourcesRemoved")
	framework.AwaitGone(t, a.member, widgets("gadgets", "Gadget"))
}

func testDefinitionStays(t *testing.T) {
	a := startAgent(t, "stays")
	w := a.create(a.work("stays", "work", 1, widget("Gizmo", "stays-a", map[string]any{}), widgets("gizmos", "Gizmo")))
	a.await(w, placementv1.ConditionApplied, applied)
	stranger := widget("Gizmo", "stays-stranger", map[string]any{})
	if err := a.member.Create(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	a.remove(w, true, "True/ResourcesReleased")
	c := meta.FindStatusCondition(w.Status.Conditions, placementv1.ConditionRemoved)
	if !strings.Contains(c.Message, "gizmos stays-stranger") {
		t.Errorf("the message does not name what keeps the definition: %s", c.Message)
	}
	framework.AwaitGone(t, a.member, widget("Gizmo", "stays-a", nil))
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger); err != nil {
		t.Errorf("the stranger: %v", err)
	}
}

// deploymentOf is a Deployment without pods.
func deploymentOf(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
}

// asUnstructured lets a test say what the Go types cannot.
func asUnstructured(t *testing.T, o any, edit func(map[string]any)) *unstructured.Unstructured {
	t.Helper()
	raw := manifests(t, o.(client.Object))[0].Raw
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	edit(u.Object)
	return u
}

func container(o map[string]any) map[string]any {
	list, _, _ := unstructured.NestedSlice(o, "spec", "template", "spec", "containers")
	return list[0].(map[string]any)
}

func setContainer(t *testing.T, o, c map[string]any) {
	t.Helper()
	if err := unstructured.SetNestedSlice(o, []any{c}, "spec", "template", "spec", "containers"); err != nil {
		t.Fatal(err)
	}
}

func testUnknownFields(t *testing.T) {
	a := startAgent(t, "fields")
	d := asUnstructured(t, deploymentOf("fields-a", 1), func(o map[string]any) {
		o["spec"].(map[string]any)["fancy"] = "x"
		c := container(o)
		c["brandNew"] = true
		c["ports"] = []any{map[string]any{"containerPort": int64(80), "speed": "high"}}
		setContainer(t, o, c)
	})
	w := a.create(a.work("fields", "work", 1, d, settings("fields-b", "1")))
	a.await(w, placementv1.ConditionApplied, applied)
	message := meta.FindStatusCondition(w.Status.ManifestConditions[0].Conditions, placementv1.ConditionApplied).Message
	for _, path := range []string{"spec.fancy", `containers[name="web"].brandNew`, "speed"} {
		if !strings.Contains(message, path) {
			t.Errorf("the message does not name %s: %s", path, message)
		}
	}
	live := deploymentOf("fields-a", 0)
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if ports := live.Spec.Template.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != 80 {
		t.Errorf("what stands beside an unknown field was lost: %v", ports)
	}
}

func testDuplicateKeys(t *testing.T) {
	a := startAgent(t, "twice")
	with := func(env ...corev1.EnvVar) *appsv1.Deployment {
		d := deploymentOf("twice-a", 1)
		d.Spec.Template.Spec.Containers[0].Env = env
		return d
	}
	one, two, extra := corev1.EnvVar{Name: "A", Value: "1"}, corev1.EnvVar{Name: "A", Value: "2"}, corev1.EnvVar{Name: "B", Value: "3"}
	first := with(one, two, extra)
	first.Annotations = map[string]string{"ours": "x"}
	w := a.create(a.work("twice", "work", 1, first))
	a.await(w, placementv1.ConditionApplied, applied)
	read := func() *appsv1.Deployment {
		t.Helper()
		live := deploymentOf("twice-a", 0)
		if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			t.Fatal(err)
		}
		return live
	}
	live := read()
	if env := live.Spec.Template.Spec.Containers[0].Env; len(env) != 3 {
		t.Errorf("env is %v, want all three", env)
	}
	uid := live.UID
	// Somebody else's annotation stays, ours goes, and so does a variable.
	live.Annotations["theirs"] = "x"
	if err := a.member.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	a.change(w, "1", with(one, two))
	a.await(w, placementv1.ConditionApplied, applied)
	live = read()
	if env := live.Spec.Template.Spec.Containers[0].Env; len(env) != 2 || live.Annotations["ours"] != "" || live.Annotations["theirs"] != "x" {
		t.Errorf("env is %v, annotations are %v", env, live.Annotations)
	}
	// Drift of an object that was merged is repaired as well.
	live.Spec.Replicas = ptr.To[int32](5)
	if err := a.member.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, live, "is repaired", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 1 })
	// Without the duplicate it is applied on the server's side again, and all that we merged goes where it is not wanted.
	a.change(w, "2", with(one))
	a.await(w, placementv1.ConditionApplied, applied)
	live = read()
	if env := live.Spec.Template.Spec.Containers[0].Env; len(env) != 1 || live.UID != uid || live.Annotations[annotationLastApplied] != "" {
		t.Errorf("env is %v, annotations are %v", env, live.Annotations)
	}
}

// testForeignOwner is an object that a controller of the member owns.
func testForeignOwner(t *testing.T) {
	a := startAgent(t, "foreign")
	owner := settings("foreign-owner", "1")
	if err := a.member.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	cm := settings("foreign-a", "theirs")
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}}
	if err := a.member.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	w := a.create(a.work("foreign", "work", 1, settings("foreign-a", "ours"), settings("foreign-b", "ours")))
	a.await(w, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	c := w.Status.ManifestConditions[0].Conditions[0]
	if c.Reason != placementv1.ReasonManifestFailedToTakeOver || !strings.Contains(c.Message, "ConfigMap foreign-owner") {
		t.Errorf("told %s: %s", c.Reason, c.Message)
	}
	if got := a.live("foreign-a").Data["key"]; got != "theirs" {
		t.Errorf("the object was written: %q", got)
	}
	a.live("foreign-b")
	// One that we have, and that somebody deletes and makes anew under another owner, is not ours any more.
	theirs := a.live("foreign-b")
	if err := a.member.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, settings("foreign-b", ""), "is made again", func(m *corev1.ConfigMap) bool { return m.UID != theirs.UID })
	a.remove(w, true, "True/ResourcesRemoved")
	if got := a.live("foreign-a").Data["key"]; got != "theirs" {
		t.Errorf("the stranger's object: %q", got)
	}
}

// patches counts what an agent writes to one object of the member.
type patches struct {
	http.RoundTripper
	path  string
	count *atomic.Int64
}

func (p patches) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, p.path) {
		p.count.Add(1)
	}
	return p.RoundTripper.RoundTrip(r)
}

// testOthersFields is an object in which somebody else keeps changing fields of his own: that is no drift, and no reason to
// write.
func testOthersFields(t *testing.T) {
	var count atomic.Int64
	config := rest.CopyConfig(memberConfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return patches{RoundTripper: next, path: "/configmaps/others-a", count: &count}
	})
	a := startAgentIn(t, "others", config)
	w := a.create(a.work("others", "work", 1, settings("others-a", "1"), settings("others-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	before := count.Load()
	if before == 0 {
		t.Error("the agent's writes are not counted")
	}
	cm := a.live("others-a")
	for i := range 20 {
		cm.Annotations = map[string]string{"leader": strings.Repeat("x", i+1)}
		if err := a.member.Update(t.Context(), cm); err != nil {
			t.Fatalf("somebody else wrote the object: %v", err) // a conflict would be a write of the agent's
		}
	}
	// One watch brings both objects, so what is repaired after that is repaired by who has seen all of it, and is done with it
	// when he repairs the next.
	for _, value := range []string{"2", "3"} {
		drifted := a.live("others-b")
		drifted.Data["key"] = value
		if err := a.member.Update(t.Context(), drifted); err != nil {
			t.Fatal(err)
		}
		framework.Await(t, a.member, drifted, "is repaired", func(cm *corev1.ConfigMap) bool { return cm.Data["key"] == "1" })
	}
	if n := count.Load() - before; n > 0 {
		t.Errorf("%d writes of an object that has not drifted", n)
	}
}

func testAutoscaled(t *testing.T) {
	a := startAgent(t, "scaled")
	scaler := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "scaled-a"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MaxReplicas:    9,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "scaled-a"},
		},
	}
	w := a.create(a.work("scaled", "work", 1, deploymentOf("scaled-a", 2), scaler))
	a.await(w, placementv1.ConditionApplied, applied)
	live := deploymentOf("scaled-a", 0)
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	live.Spec.Replicas = ptr.To[int32](7)
	if err := a.member.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	next := deploymentOf("scaled-a", 2)
	next.Spec.Template.Spec.Containers[0].Image = "web:2"
	a.change(w, "1", next, scaler)
	framework.Await(t, a.member, live, "has the new image", func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == "web:2" })
	if *live.Spec.Replicas != 7 {
		t.Errorf("the autoscaler's 7 replicas are %d", *live.Spec.Replicas)
	}
	// Kruise puts the autoscaler aside while it releases: that is no end.
	aside := scaler.DeepCopy()
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(aside), aside); err != nil {
		t.Fatal(err)
	}
	aside.Spec.ScaleTargetRef.Name += kruise.Aside
	if err := a.member.Update(t.Context(), aside); err != nil {
		t.Fatal(err)
	}
	next.Spec.Template.Spec.Containers[0].Image = "web:3"
	a.change(w, "2", next, scaler)
	framework.Await(t, a.member, live, "has the next image", func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == "web:3" })
	if *live.Spec.Replicas != 7 {
		t.Errorf("during a release the autoscaler's 7 replicas are %d", *live.Spec.Replicas)
	}
	// Without the autoscaler the manifest has its say again, though nothing of the Deployment has changed.
	a.change(w, "3", next)
	framework.Await(t, a.member, live, "has its own replicas again", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 })
}

// testReleased is a Deployment that Kruise has in hand, and lets go without writing what it had changed.
func testReleased(t *testing.T) {
	a := startAgent(t, "released")
	w := a.create(a.work("released", "work", 1, deploymentOf("released-a", 2)))
	a.await(w, placementv1.ConditionApplied, applied)
	live := deploymentOf("released-a", 0)
	if err := a.member.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	live.Annotations = map[string]string{kruise.InProgress: "x"}
	live.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if err := a.member.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	next := deploymentOf("released-a", 2)
	next.Spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	next.Spec.Template.Spec.Containers[0].Image = "web:2"
	a.change(w, "1", next)
	framework.Await(t, a.member, live, "has the new image", func(d *appsv1.Deployment) bool { return d.Spec.Template.Spec.Containers[0].Image == "web:2" })
	if live.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("Kruise's strategy has become %s", live.Spec.Strategy.Type)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+kruise.InProgress+`":null}}}`))
	if err := a.member.Patch(t.Context(), live, patch); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, a.member, live, "has its own strategy", func(d *appsv1.Deployment) bool {
		return d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
	})
}

// testSecret is a Secret that the member refuses: what it holds is told to nobody.
func testSecret(t *testing.T) {
	a := startAgent(t, "secret")
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "secret-a"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("hunter2 is not JSON")},
	}
	w := a.create(a.work("secret", "work", 1, secret))
	a.await(w, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	message := w.Status.ManifestConditions[0].Conditions[0].Message
	if strings.Contains(message, "hunter2") || !strings.Contains(message, "data[.dockerconfigjson]") {
		t.Errorf("want the field and not what it holds: %s", message)
	}
}

// testImmutable is a change that the member refuses for good, beside one that it takes.
func testImmutable(t *testing.T) {
	a := startAgent(t, "immutable")
	fixed := settings("immutable-a", "1")
	fixed.Immutable = ptr.To(true)
	w := a.create(a.work("immutable", "work", 1, fixed, settings("immutable-b", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	fixed.Data["key"] = "2"
	a.change(w, "1", fixed, settings("immutable-b", "2"))
	a.await(w, placementv1.ConditionApplied, "False/SomeManifestsAreNotApplied")
	c := w.Status.ManifestConditions[0].Conditions[0]
	if c.Reason != placementv1.ReasonManifestApplyFailed || !strings.Contains(c.Message, "immutable") {
		t.Errorf("told %s: %s", c.Reason, c.Message)
	}
	if got := a.live("immutable-b").Data["key"]; got != "2" {
		t.Errorf("the other object is %q, want 2", got)
	}
	fixed.Data["key"] = "1"
	a.change(w, "2", fixed, settings("immutable-b", "2"))
	a.await(w, placementv1.ConditionAvailable, available)
}

func testDriftIsTold(t *testing.T) {
	a := startAgent(t, "told")
	w := a.create(a.work("told", "work", 1, settings("told-a", "1")))
	a.await(w, placementv1.ConditionAvailable, available)
	cm := a.live("told-a")
	cm.Data["key"] = "secretly changed"
	if err := a.member.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	var event *corev1.Event
	events, err := a.hub.Watch(t.Context(), &corev1.EventList{}, client.InNamespace(a.namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("reason", "DriftRepaired")})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		if found, ok := e.Object.(*corev1.Event); ok {
			event = found
			break
		}
	}
	if event == nil || event.InvolvedObject.Name != w.Name || !strings.Contains(event.Message, "/data/key") || strings.Contains(event.Message, "secretly") {
		t.Errorf("the event is %+v, want the place and no value", event)
	}
}
