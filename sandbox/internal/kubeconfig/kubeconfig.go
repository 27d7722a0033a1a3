// Package kubeconfig writes the files that clients find clusters by.
package kubeconfig

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is how one user reaches one cluster.
type Access struct {
	// Context names the context and the cluster in it.
	Context string
	// User is the user's name in the cluster.
	User string
	// Server is the URL of the API server.
	Server string
	// CAFile holds the certificate authority of the API server.
	CAFile string
	// Cert and Key authenticate the user.
	Cert, Key []byte
}

// Encode returns a kubeconfig. Certificates and keys are in it, so that it can be copied elsewhere.
func Encode(a Access) ([]byte, error) {
	ca, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate authority of cluster %s: %w", a.Context, err)
	}
	user := a.Context + "-" + a.User
	config := clientcmdapi.NewConfig()
	config.Clusters[a.Context] = &clientcmdapi.Cluster{Server: a.Server, CertificateAuthorityData: ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: a.Cert, ClientKeyData: a.Key}
	config.Contexts[a.Context] = &clientcmdapi.Context{Cluster: a.Context, AuthInfo: user}
	config.CurrentContext = a.Context
	return encode(config)
}

// Merge writes all contexts of some files to one, the first file's current context being current there.
func Merge(path string, files ...string) error {
	merged := clientcmdapi.NewConfig()
	for _, file := range files {
		config, err := clientcmd.LoadFromFile(file)
		if err != nil {
			return fmt.Errorf("reading kubeconfig %s: %w", file, err)
		}
		for name, cluster := range config.Clusters {
			merged.Clusters[name] = cluster
		}
		for name, user := range config.AuthInfos {
			merged.AuthInfos[name] = user
		}
		for name, context := range config.Contexts {
			merged.Contexts[name] = context
		}
		if merged.CurrentContext == "" {
			merged.CurrentContext = config.CurrentContext
		}
	}
	content, err := encode(merged)
	if err != nil {
		return err
	}
	return WriteFile(path, content)
}

// WriteFile writes a kubeconfig for its owner alone. Readers see the old file or the new one, never a part.
func WriteFile(path string, content []byte) error {
	next := path + ".new"
	err := os.WriteFile(next, content, 0o600)
	if err = errors.Join(err, os.Rename(next, path)); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

func encode(config *clientcmdapi.Config) ([]byte, error) {
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return content, nil
}
