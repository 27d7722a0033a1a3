package quickstart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// aYear is how long the tokens of a sandbox's processes live, in seconds.
const aYear = 365 * 24 * 3600

// token asks the API server for a token of a service account.
func token(ctx context.Context, c client.Client, namespace, name string, seconds int64) (string, error) {
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = namespace, name
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(seconds)}}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("ask for a token of service account %s/%s: %w", namespace, name, err)
	}
	return request.Status.Token, nil
}

// writeKubeconfig writes a kubeconfig that signs in to the cluster of config as a service account, with the rights that
// the manifests give it and no others.
func writeKubeconfig(ctx context.Context, c client.Client, config *rest.Config, namespace, account, file string) error {
	t, err := token(ctx, c, namespace, account, aYear)
	if err != nil {
		return err
	}
	ca, err := authority(config)
	if err != nil {
		return err
	}
	k := clientcmdapi.NewConfig()
	k.Clusters["cluster"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: ca}
	k.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: t}
	k.Contexts["default"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: account, Namespace: namespace}
	k.CurrentContext = "default"
	if err := clientcmd.WriteToFile(*k, file); err != nil {
		return fmt.Errorf("write kubeconfig for %s/%s: %w", namespace, account, err)
	}
	return nil
}

// authority is who vouches for the API server of a cluster, in PEM.
func authority(config *rest.Config) ([]byte, error) {
	if len(config.CAData) > 0 {
		return config.CAData, nil
	}
	ca, err := os.ReadFile(config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the CA certificate of %s: %w", config.Host, err)
	}
	return ca, nil
}

// writePrivate writes a file that only its owner may read.
func writePrivate(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make folder for %s: %w", file, err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
