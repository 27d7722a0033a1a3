package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Store keeps an agent's credentials over restarts.
type Store interface {
	// Load returns what was saved last; empty credentials if nothing was.
	Load(ctx context.Context) (*Credentials, error)
	// Save keeps them, all or nothing.
	Save(ctx context.Context, c *Credentials) error
}

const (
	// SecretName is the Secret that an agent keeps its credentials in.
	SecretName = "fleetwright-agent-credentials"
	// bundle is the key in it, and the name of the file, that holds them.
	bundle = "credentials.pem"
)

// SecretStore keeps credentials in a Secret of the member.
type SecretStore struct {
	// Client talks to the member's API server, without a cache.
	Client client.Client
	// Namespace is where the Secret is.
	Namespace string
}

// Load reads the Secret.
func (s *SecretStore) Load(ctx context.Context) (*Credentials, error) {
	secret := &corev1.Secret{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: SecretName}, secret)
	if apierrors.IsNotFound(err) {
		return &Credentials{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s of the member: %w", s.Namespace, SecretName, err)
	}
	return decode(secret.Data[bundle]), nil
}

// Save writes the Secret, or makes it.
func (s *SecretStore) Save(ctx context.Context, c *Credentials) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = s.Namespace, SecretName
	err := s.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	switch {
	case apierrors.IsNotFound(err):
		secret.Data = map[string][]byte{bundle: c.encode()}
		err = s.Client.Create(ctx, secret)
	case err == nil:
		before := secret.DeepCopy()
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[bundle] = c.encode()
		err = s.Client.Patch(ctx, secret, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s of the member: %w", s.Namespace, SecretName, err)
	}
	return nil
}

// DirStore keeps credentials in a file, for agents that run outside their cluster.
type DirStore string

// Load reads the file.
func (s DirStore) Load(context.Context) (*Credentials, error) {
	content, err := os.ReadFile(filepath.Join(string(s), bundle))
	if errors.Is(err, fs.ErrNotExist) {
		return &Credentials{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the agent's credentials: %w", err)
	}
	return decode(content), nil
}

// Save writes a new file in the place of the old one.
func (s DirStore) Save(_ context.Context, c *Credentials) error {
	if err := os.MkdirAll(string(s), 0o700); err != nil {
		return fmt.Errorf("make a folder for the agent's credentials: %w", err)
	}
	file, err := os.CreateTemp(string(s), "."+bundle+"-*") // readable by its owner alone
	if err != nil {
		return fmt.Errorf("make a file for the agent's credentials: %w", err)
	}
	defer os.Remove(file.Name()) // gone already if all went well
	_, err = file.Write(c.encode())
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(string(s), bundle))
	}
	if err != nil {
		return fmt.Errorf("write the agent's credentials: %w", err)
	}
	return nil
}
