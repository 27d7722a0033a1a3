package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetwright/fleetwright/sandbox/internal/sandbox"
)

func testAdministrator(t *testing.T, s *sandbox.Sandbox) {
	for _, cluster := range []string{"hub", "member1", "member2"} {
		client := clientFor(t, s, cluster)
		review, err := client.AuthenticationV1().SelfSubjectReviews().
			Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatalf("%s: %v", cluster, err)
		}
		groups := review.Status.UserInfo.Groups
		if !slices.Contains(groups, "fleetwright:admins") || slices.Contains(groups, "system:masters") {
			t.Errorf("%s: the administrator's groups are %v", cluster, groups)
		}
		if _, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("%s: the administrator may not do everything: %v", cluster, err)
		}
	}
}

func testHubRunsNoWorkloads(t *testing.T, s *sandbox.Sandbox) {
	client := clientFor(t, s, "hub")
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("template"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The garbage collector deletes what a ReplicaSet that never was owns: when it has, a controller for Deployments
	// would have had its turn as well.
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "orphan",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "never", UID: "never"}},
	}}
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), orphan, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().ConfigMaps("default").Get(ctx, "orphan", metav1.GetOptions{})
		return gone(err)
	})
	sets, err := client.AppsV1().ReplicaSets("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) > 0 {
		t.Errorf("the hub has %d ReplicaSets (%v)", len(sets.Items), err)
	}
}

func testNamespaceDeletion(t *testing.T, s *sandbox.Sandbox) {
	client := clientFor(t, s, "hub")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "passing", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, "passing", metav1.GetOptions{})
		return gone(err)
	})
}

func testCertificateSigning(t *testing.T, s *sandbox.Sandbox) {
	config := configFor(t, s, "hub")
	client := clientFor(t, s, "hub")
	request, key := certificateRequest(t, "agent-of-member1")
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    request,
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
	requests := client.CertificatesV1().CertificateSigningRequests()
	created, err := requests.Create(t.Context(), csr, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	}}
	if _, err := requests.UpdateApproval(t.Context(), created.Name, created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		got, err := requests.Get(ctx, created.Name, metav1.GetOptions{})
		if err == nil && len(got.Status.Certificate) == 0 {
			return errors.New("there is no certificate yet")
		}
		if err == nil {
			config.CertData, config.KeyData = got.Status.Certificate, key
		}
		return err
	})
	agent, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := agent.AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || review.Status.UserInfo.Username != "agent-of-member1" {
		t.Errorf("with the certificate the user is %q (%v)", review.Status.UserInfo.Username, err)
	}
}

func testWorkload(t *testing.T, s *sandbox.Sandbox) {
	client := clientFor(t, s, "member1")
	deployments := client.AppsV1().Deployments("default")
	if _, err := deployments.Create(t.Context(), deployment("web"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		got, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && got.Status.AvailableReplicas != 4 {
			return fmt.Errorf("%d of 4 replicas are available", got.Status.AvailableReplicas)
		}
		return err
	})
	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
		}
	}
}

func testRollout(t *testing.T, s *sandbox.Sandbox) {
	const name = "batched"
	client, dynamic := clientFor(t, s, "member1"), dynamicFor(t, s, "member1")
	deployments := client.AppsV1().Deployments("default")
	created, err := deployments.Create(t.Context(), deployment(name), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rollouts := dynamic.Resource(schema.GroupVersionResource{Group: "rollouts.kruise.io", Version: "v1beta1", Resource: "rollouts"}).
		Namespace("default")
	if _, err := rollouts.Create(t.Context(), rollout(name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	reaches := func(path []string, want string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			got, err := rollouts.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if value, _, _ := unstructured.NestedString(got.Object, path...); value != want {
				return fmt.Errorf("%v is %q, want %q", path, value, want)
			}
			return nil
		})
	}
	reaches([]string{"status", "phase"}, "Healthy")
	// Kruise's webhook sees changes of what has its label alone: one that came before would reach all pods at once.
	eventually(t, func(ctx context.Context) error {
		d, err := deployments.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case d.Labels["rollouts.kruise.io/workload-type"] == "":
			return fmt.Errorf("the Deployment has no label of Kruise's: %v", d.Labels)
		case d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != 4:
			return fmt.Errorf("the Deployment's status is %+v, at generation %d", d.Status, d.Generation)
		}
		return nil
	})

	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	const strategicMerge = "application/strategic-merge-patch+json"
	if _, err := deployments.Patch(t.Context(), created.Name, strategicMerge, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	reaches([]string{"status", "currentStepState"}, "StepPaused")
	got, err := deployments.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || got.Status.UpdatedReplicas != 2 {
		t.Errorf("%d replicas are updated after the first batch (%v), want 2", got.Status.UpdatedReplicas, err)
	}
}

// testSeparateAuthorities checks that a certificate that the hub's authority issued opens no other cluster.
func testSeparateAuthorities(t *testing.T, s *sandbox.Sandbox) {
	content, err := s.UserKubeconfig("hub", "intruder", []string{"system:masters"})
	if err != nil {
		t.Fatal(err)
	}
	hub, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		t.Fatal(err)
	}
	member := configFor(t, s, "member1")
	member.CertData, member.KeyData = hub.CertData, hub.KeyData
	client, err := kubernetes.NewForConfig(member)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("got %v, want to be unauthorized", err)
	}
}

// gone turns the answer to a read into an error unless the object is gone.
func gone(err error) error {
	if err == nil {
		return errors.New("it is still there")
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func deployment(name string) *appsv1.Deployment {
	replicas := int32(4)
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/image"}}},
			},
		},
	}
}

// rollout describes a Rollout of a Deployment in two batches.
func rollout(deployment string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rollouts.kruise.io/v1beta1",
		"kind":       "Rollout",
		"metadata":   map[string]any{"name": deployment},
		"spec": map[string]any{
			"workloadRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment},
			"strategy": map[string]any{"canary": map[string]any{
				"enableExtraWorkloadForCanary": false,
				"steps":                        []any{map[string]any{"replicas": "50%"}, map[string]any{"replicas": "100%"}},
			}},
		},
	}}
}

// certificateRequest returns a certificate request and the private key for it, both PEM.
func certificateRequest(t *testing.T, user string) (request, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}
