package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for failures := 1; failures <= 6; failures++ {
		got = append(got, backoff(failures)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 15, 15}, got); diff != "" {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
}

func TestWaves(t *testing.T) {
	t.Parallel()
	order := []schema.GroupResource{
		{Resource: "namespaces"}, {Resource: "configmaps"}, {Group: "rbac.authorization.k8s.io", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, {Group: "apps", Resource: "deployments"},
		{Group: "apiregistration.k8s.io", Resource: "apiservices"}, {Group: "example.com", Resource: "configmaps"},
	}
	for wave, resource := range order {
		if got := waveOf(resource); got != wave {
			t.Errorf("%s is applied in wave %d, want %d", resource, got, wave)
		}
	}
}

func TestSanitize(t *testing.T) {
	t.Parallel()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"}, "status": map[string]any{"x": "y"},
		"metadata": map[string]any{
			"name": "a", "uid": "u", "resourceVersion": "1", "finalizers": []any{"x"}, "ownerReferences": []any{},
			"labels":      map[string]any{"app": "web", "app.kubernetes.io/managed-by": "Helm", "argocd.argoproj.io/instance": "x"},
			"annotations": map[string]any{"meta.helm.sh/release-name": "r"},
		},
	}}
	sanitize(o)
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "b"},
		"metadata": map[string]any{"name": "a", "labels": map[string]any{"app": "web"}},
	}
	if diff := cmp.Diff(want, o.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOutsiders(t *testing.T) {
	t.Parallel()
	object := func(resource, name string, owners ...metav1.OwnerReference) content {
		c := content{GroupResource: schema.GroupResource{Resource: resource}}
		c.Name, c.UID, c.OwnerReferences = name, types.UID(name), owners
		return c
	}
	applied := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: placementv1.GroupVersion.String(), Kind: "AppliedWork", Name: name, UID: types.UID(name)}
	}
	by := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: "Thing", Name: name, UID: types.UID(name)}
	}
	going := object("things", "going")
	going.DeletionTimestamp = &metav1.Time{}
	token := object("secrets", "token")
	token.Annotations = map[string]string{"kubernetes.io/service-account.name": "default"}
	got := outsiders([]content{
		object("things", "placed", applied("ours")), object("things", "child", by("placed")), object("things", "grandchild", by("child")),
		object("things", "left-over", by("gone")), going,
		object("things", "stranger"), object("things", "strangers-child", by("stranger")),
		object("things", "shared", by("placed"), by("stranger")),
		object("things", "of-a-node", by("node")),
		object("things", "of-another-placement", applied("others")), object("things", "its-child", by("of-another-placement")),
		object("things", "namesake", metav1.OwnerReference{Kind: "AppliedWork", APIVersion: "example.com/v1", UID: "node"}),
		object("configmaps", "kube-root-ca.crt"), object("serviceaccounts", "default"), token,
		object("configmaps", "default"), object("secrets", "kube-root-ca.crt"),
		object("services", "web", applied("ours")), object("endpoints", "web"), object("endpoints", "lonely"),
	}, func(owner metav1.OwnerReference, _ *content) string {
		if owner.Name == "others" {
			return "placed by others"
		}
		return ""
	}, map[types.UID]bool{"node": true})
	want := []string{
		"configmaps default (not placed)", "endpoints lonely (not placed)", "secrets kube-root-ca.crt (not placed)", "things its-child (placed by others)",
		"things namesake (not placed)", "things of-a-node (not placed)", "things of-another-placement (placed by others)", "things shared (not placed)",
		"things stranger (not placed)", "things strangers-child (not placed)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTrimKeepsWhatIsNotDone(t *testing.T) {
	t.Parallel()
	status := &placementv1.WorkStatus{}
	long := strings.Repeat("x", 900)
	for i := range 2000 {
		state := metav1.ConditionTrue
		if i%4 == 0 {
			state = metav1.ConditionFalse
		}
		status.ManifestConditions = append(status.ManifestConditions, placementv1.ManifestCondition{
			Identifier: placementv1.WorkResourceIdentifier{Ordinal: int32(i), Name: fmt.Sprint(i)},
			Conditions: []metav1.Condition{{Type: placementv1.ConditionAvailable, Status: state, Message: long}},
		})
	}
	omitted := trim(status)
	if omitted+len(status.ManifestConditions) != 2000 {
		t.Errorf("%d omitted and %d kept are not 2000", omitted, len(status.ManifestConditions))
	}
	for _, m := range status.ManifestConditions {
		if m.Conditions[0].Status == metav1.ConditionTrue {
			t.Fatalf("manifest %s is done and listed, although some that are not done are left out", m.Identifier.Name)
		}
	}
	if len(status.ManifestConditions) < 400 {
		t.Errorf("only %d are kept: more would fit", len(status.ManifestConditions))
	}
}

func TestErrorsOfSecretsHaveNoValues(t *testing.T) {
	t.Parallel()
	err := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", field.ErrorList{field.Invalid(field.NewPath("data").Key("password"), "hunter2", "is bad")})
	key := objectKey{GroupKind: secrets, namespace: "app", name: "s"}
	got := tell(key, err)
	if strings.Contains(got, "hunter2") || !strings.Contains(got, "data[password]") {
		t.Errorf("got %q, want the field and not the value", got)
	}
	if got := tell(key, fmt.Errorf("take it over: %w", err)); !strings.Contains(got, "data[password]") || strings.Contains(got, "hunter2") {
		t.Errorf("of an error within another got %q, want the field and not the value", got)
	}
	gone := discreetly(key, fmt.Errorf("delete %s: %w", key, err))
	if text := errors.Join(gone).Error(); strings.Contains(text, "hunter2") || !strings.Contains(text, "Secret app/s") || !apierrors.IsInvalid(gone) {
		t.Errorf("of a Secret that cannot be removed got %q, want the object, no value, and the same error", text)
	}
	key.Kind = "ConfigMap"
	if got := tell(key, err); !strings.Contains(got, "hunter2") {
		t.Errorf("the error of another kind is told whole, got %q", got)
	}
}
