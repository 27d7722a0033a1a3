package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"
)

// RootConfig returns how the sandbox itself reaches the cluster, with all rights.
func (p *Plane) RootConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig(rootKubeconfig))
	if err != nil {
		return nil, fmt.Errorf("preparing access to cluster %s: %w", p.Name, err)
	}
	config.QPS = -1
	config.UserAgent = "fleetwright-sandbox"
	return config, nil
}

// Prepare binds the administrators and the sandbox's add-ons to the cluster-admin role, where that is missing.
func (p *Plane) Prepare(ctx context.Context, client kubernetes.Interface) error {
	for _, group := range []string{AdminsGroup, addOnsGroup} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: group},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating ClusterRoleBinding %s in cluster %s: %w", binding.Name, p.Name, err)
		}
	}
	return nil
}

// WaitUsable waits until the controller manager has given the default namespace what every namespace gets. Before
// that, pods are refused.
func (p *Plane) WaitUsable(ctx context.Context, client kubernetes.Interface) error {
	core := client.CoreV1().RESTClient()
	if err := waitExists(ctx, core, "serviceaccounts", &corev1.ServiceAccount{}, "default"); err != nil {
		return fmt.Errorf("waiting in cluster %s: %w", p.Name, err)
	}
	if err := waitExists(ctx, core, "configmaps", &corev1.ConfigMap{}, "kube-root-ca.crt"); err != nil {
		return fmt.Errorf("waiting in cluster %s: %w", p.Name, err)
	}
	return nil
}

// waitExists waits until an object exists in namespace default.
func waitExists(ctx context.Context, client cache.Getter, resource string, kind runtime.Object, name string) error {
	objects := cache.NewListWatchFromClient(client, resource, metav1.NamespaceDefault, fields.OneTermEqualSelector("metadata.name", name))
	_, err := watchtools.UntilWithSync(ctx, objects, kind, nil, func(event watch.Event) (bool, error) {
		return event.Type == watch.Added || event.Type == watch.Modified, nil
	})
	if err != nil {
		return fmt.Errorf("for %s %s/%s to exist: %w", resource, metav1.NamespaceDefault, name, err)
	}
	return nil
}
