package setup

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"no name":         {Options{HubURL: "https://hub"}, "--cluster-name"},
		"no hub":          {Options{ClusterName: "m"}, "--hub-url"},
		"two ways to go":  {Options{ClusterName: "m", HubURL: "https://hub", BootstrapTokenFile: "a", TokenFile: "b"}, "either"},
		"all there is":    {Options{ClusterName: "m", HubURL: "https://hub", BootstrapTokenFile: "a"}, ""},
		"signed in later": {Options{ClusterName: "m", HubURL: "https://hub"}, ""}, // a stored certificate will do
	} {
		err := tc.options.Validate()
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// rightsOfAnAgent are those that the hub gives to an agent with spec.identity.
func rightsOfAnAgent(namespace string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{placementv1.GroupVersion.Group}, Resources: []string{"works"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{placementv1.GroupVersion.Group}, Resources: []string{"works/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"internalmemberclusters"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{clusterv1.GroupVersion.Group}, Resources: []string{"internalmemberclusters/status"}, Verbs: []string{"patch", "update"}},
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{clusterv1.HeartbeatLease}, Verbs: []string{"patch"}},
	}}
	return role, &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "agent"}},
	}
}

func writeKubeconfig(t *testing.T, config *rest.Config, file string) {
	t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	k.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		t.Fatal(err)
	}
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestTwoMemberships runs an agent that joins with an identity of its own and no more than its rights, applies, leaves, and
// joins again.
func TestTwoMemberships(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	hubConfig, memberConfig := framework.StartAPIServer(t), framework.StartMemberAPIServer(t)
	clientOf := func(config *rest.Config) client.WithWatch {
		c, err := client.NewWithWatch(config, client.Options{Scheme: framework.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	hub, member := clientOf(hubConfig), clientOf(memberConfig)
	kubeSystem := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}
	framework.Await(t, member, kubeSystem, "exists", func(*corev1.Namespace) bool { return true })

	const name = "m"
	ns, dir := placement.MemberNamespace(name), t.TempDir()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "agent"}}
	role, binding := rightsOfAnAgent(ns)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: clusterv1.HeartbeatLease}}
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, account, role, binding, lease} {
		if err := hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := hub.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{"token": []byte(token.Status.Token), "ca": hubConfig.CAData} {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeKubeconfig(t, memberConfig, filepath.Join(dir, "member"))
	probe, figures := freeAddress(t), freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Options{
			ClusterName: name, HubURL: hubConfig.Host, HubCAFile: filepath.Join(dir, "ca"), TokenFile: filepath.Join(dir, "token"),
			MemberKubeconfig: filepath.Join(dir, "member"), ProbeAddress: probe, MetricsAddress: figures, Clock: clock.RealClock{}, Log: logr.Discard(),
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("run the agent: %v", err)
		}
	})

	for _, round := range []string{"first", "second"} {
		imc := &clusterv1.InternalMemberCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec:       clusterv1.InternalMemberClusterSpec{State: clusterv1.ClusterStateJoin, HeartbeatPeriodSeconds: 1},
		}
		if err := hub.Create(t.Context(), imc); err != nil {
			t.Fatal(err)
		}
		framework.Await(t, hub, imc, "says which cluster it is", func(i *clusterv1.InternalMemberCluster) bool { return i.Status.ClusterID == string(kubeSystem.UID) })
		ask := func(change func(*clusterv1.InternalMemberClusterSpec)) {
			before := imc.DeepCopy()
			change(&imc.Spec)
			if err := hub.Patch(t.Context(), imc, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
		joined := func(want metav1.ConditionStatus) func(i *clusterv1.InternalMemberCluster) bool {
			return func(i *clusterv1.InternalMemberCluster) bool {
				return len(i.Status.AgentStatus) == 1 && meta.IsStatusConditionPresentAndEqual(i.Status.AgentStatus[0].Conditions, clusterv1.ConditionJoined, want)
			}
		}
		ask(func(s *clusterv1.InternalMemberClusterSpec) { s.ClusterID = string(kubeSystem.UID) })
		framework.Await(t, hub, imc, "has joined", joined(metav1.ConditionTrue))
		if got := statusOf(t, "http://"+probe+"/readyz"); got != http.StatusOK {
			t.Errorf("%s round: a member's agent is not ready: %d", round, got)
		}
		applied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: round}}
		work := &placementv1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: round, Labels: map[string]string{placementv1.LabelParentBinding: "b", placementv1.LabelParentSnapshotIndex: "0"},
			Annotations: map[string]string{placementv1.AnnotationWorkCount: "1"},
		}}
		work.Spec.Workload.Manifests = []placementv1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + round + `"}}`),
		}}}
		if err := hub.Create(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		framework.Await(t, member, applied, "was applied", func(*corev1.ConfigMap) bool { return true })

		ask(func(s *clusterv1.InternalMemberClusterSpec) {
			s.State, s.Workloads = clusterv1.ClusterStateLeave, clusterv1.WorkloadsKeep
		})
		framework.Await(t, hub, imc, "has left", joined(metav1.ConditionFalse))
		if err := member.Get(t.Context(), client.ObjectKeyFromObject(applied), applied); err != nil || len(applied.OwnerReferences) > 0 {
			t.Errorf("%s round: what was placed is gone, or still owned: %v, %v", round, err, applied.OwnerReferences)
		}
		for _, object := range []client.Object{work, imc} {
			if err := hub.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := statusOf(t, "http://"+figures+"/metrics"); got != http.StatusOK {
		t.Errorf("metrics: %d", got)
	}
	if got := statusOf(t, "http://"+probe+"/healthz"); got != http.StatusOK {
		t.Errorf("an agent without a membership is not healthy: %d", got)
	}
}
