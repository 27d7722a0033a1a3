package joining

import (
	"context"
	"os"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	managerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var admin *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(framework.RunWithAPIServer(m, &admin))
}

// startController starts the controller with the hub's own rights. What it tells of second clusters arrives in the channel.
func startController(t *testing.T, c client.Client) <-chan string {
	t.Helper()
	for _, object := range framework.Manifests(t, "config/rbac/hub") {
		if err := c.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("install the hub's rights: %v", err)
		}
	}
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:fleetwright-system:fleetwright-hub", Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: framework.Scheme(), Cache: cache.Options{ByObject: CacheByObject()}, Metrics: server.Options{BindAddress: "0"},
		Controller: managerconfig.Controller{SkipNameValidation: ptr.To(true)}, // the test may be repeated
	})
	if err != nil {
		t.Fatal(err)
	}
	others := make(chan string, 1)
	controller := &Controller{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("test"),
		SecondCluster: func(_ context.Context, cluster, id string) { others <- cluster + " " + id },
	}
	if err := controller.SetupWithManager(mgr); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("run the controller: %v", err)
		}
	})
	return others
}

// as returns a client that is somebody else, who may make certificate signing requests.
func as(t *testing.T, user string, extra map[string][]string) client.Client {
	t.Helper()
	config := rest.CopyConfig(admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}, Extra: extra}
	return framework.Client(t, config)
}

// request makes a request for a certificate as somebody.
func request(t *testing.T, c client.Client, name, commonName, clusterID string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr := firstRequest(t, "")
	csr.ObjectMeta = metav1.ObjectMeta{GenerateName: name + "-", Annotations: map[string]string{clusterv1.AnnotationClusterID: clusterID}}
	csr.Spec.Username, csr.Spec.Extra = "", nil // the API server fills them in
	csr.Spec.Request = sign(t, newKey(t), subject(commonName, clusterv1.AgentsGroup))
	if err := c.Create(t.Context(), csr); err != nil {
		t.Fatal(err)
	}
	return csr
}

// awaitAnswer waits until a request is answered as it should be.
func awaitAnswer(t *testing.T, c client.WithWatch, csr *certificatesv1.CertificateSigningRequest, want certificatesv1.RequestConditionType, says string) {
	t.Helper()
	framework.Await(t, c, csr, "is answered", answered)
	got := csr.Status.Conditions[0]
	if got.Type != want || !strings.Contains(got.Message, says) {
		t.Errorf("request %s is %s: %q, want %s with %q", csr.Name, got.Type, got.Message, want, says)
	}
}

func TestAnswers(t *testing.T) {
	c, err := client.NewWithWatch(admin, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	anyone := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "request"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "request"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "request"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	}
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	for _, object := range []client.Object{anyone, binding, cluster} {
		if err := c.Create(t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	others := startController(t, c)
	user := clusterv1.AgentUser("m", cluster.UID)
	token := func(id string) map[string][]string { return map[string][]string{credentialID: {"JTI=" + id}} }

	first := request(t, as(t, bootstrapOfM, token("1")), "first", user, "cluster-1")
	awaitAnswer(t, c, first, certificatesv1.CertificateApproved, "cluster m joins with a bootstrap token")
	awaitAnswer(t, c, request(t, as(t, bootstrapOfM, token("1")), "second", user, "cluster-1"), certificatesv1.CertificateDenied, "used already, by request "+first.Name)
	awaitAnswer(t, c, request(t, as(t, user, nil), "renewal", user, "cluster-1"), certificatesv1.CertificateApproved, "renews")
	awaitAnswer(t, c, request(t, as(t, "jane", nil), "stranger", user, "cluster-1"), certificatesv1.CertificateDenied, "made by jane")
	awaitAnswer(t, c, request(t, as(t, bootstrapOfM, token("2")), "nowhere", clusterv1.AgentUser("n", "uid"), "cluster-1"),
		certificatesv1.CertificateDenied, "there is no MemberCluster n")

	awaitAnswer(t, c, request(t, as(t, bootstrapOfM, token("3")), "other-cluster", user, "cluster-2"), certificatesv1.CertificateDenied, "comes from another, with cluster-2")
	if got := <-others; got != "m cluster-2" {
		t.Errorf("told of second cluster %q", got)
	}

	// What does not claim to be ours is left alone: had it been taken up, it would have been answered before the next one.
	plain := firstRequest(t, "")
	plain.ObjectMeta = metav1.ObjectMeta{GenerateName: "plain-"}
	plain.Spec.Username, plain.Spec.Extra = "", nil
	plain.Spec.Request = sign(t, newKey(t), subject("jane", "developers"))
	if err := as(t, "jane", nil).Create(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	awaitAnswer(t, c, request(t, as(t, "jane", nil), "impostor", "jane", "cluster-1"), certificatesv1.CertificateDenied, "the common name must be")
	awaitAnswer(t, c, request(t, as(t, user, nil), "last", user, "cluster-1"), certificatesv1.CertificateApproved, "renews")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(plain), plain); err != nil {
		t.Fatal(err)
	}
	if len(plain.Status.Conditions) > 0 {
		t.Errorf("a request of somebody else was answered: %+v", plain.Status.Conditions)
	}

	if err := c.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	awaitAnswer(t, c, request(t, as(t, user, nil), "too-late", user, "cluster-1"), certificatesv1.CertificateDenied, "there is no MemberCluster m")

	if got := first.Status.Conditions[0]; got.Reason != ReasonApproved || got.Status != corev1.ConditionTrue {
		t.Errorf("the approval is %+v", got)
	}
}

// TestOneTokenOneCertificate: of requests made with one token at the same time one is approved.
func TestOneTokenOneCertificate(t *testing.T) {
	c, err := client.NewWithWatch(admin, client.Options{Scheme: framework.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{GenerateName: "rush-"}}
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	rights := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "rush-"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: bootstrapUser(cluster.Name)}},
	}
	if err := c.Create(t.Context(), rights); err != nil {
		t.Fatal(err)
	}
	hasty := as(t, bootstrapUser(cluster.Name), map[string][]string{credentialID: {"JTI=" + cluster.Name}})
	var requests []*certificatesv1.CertificateSigningRequest
	for range 2 * workers { // made before the controller starts, so that it finds all of them at once
		requests = append(requests, request(t, hasty, cluster.Name, clusterv1.AgentUser(cluster.Name, cluster.UID), "cluster-1"))
	}
	startController(t, c)
	got := 0
	for _, csr := range requests {
		framework.Await(t, c, csr, "is answered", answered)
		if approved(csr) {
			got++
		}
	}
	if got != 1 {
		t.Errorf("%d requests made with one token were approved, want 1", got)
	}
}
