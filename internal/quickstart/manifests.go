package quickstart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldManager owns what is installed.
const fieldManager = client.FieldOwner("fleetwright-install")

// applyFolder applies every object of every YAML file directly in the folder, files by name.
func applyFolder(ctx context.Context, c client.Client, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return fmt.Errorf("list manifests in %s: %w", folder, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("no manifests in %s", folder)
	}
	slices.Sort(files)
	for _, file := range files {
		objects, err := readManifests(file)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := applyObject(ctx, c, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// applyObject applies one object. A kind that is not served yet, since its definition was only just installed, is
// waited for.
func applyObject(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldManager, client.ForceOwnership)
		switch {
		case last == nil:
			return true, nil
		case meta.IsNoMatchError(last), apierrors.IsNotFound(last), apierrors.IsServerTimeout(last):
			return false, nil
		default:
			return false, last
		}
	})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), errors.Join(err, last))
	}
	return nil
}

// readManifests reads the objects of one YAML file.
func readManifests(file string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read manifests from %s: %w", file, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// ownGroups are the API groups of the product.
var ownGroups = []string{clusterv1.GroupVersion.Group, placementv1.GroupVersion.Group, policyv1alpha1.GroupVersion.Group}

// waitForCRDs waits until the API server serves the product's kinds. Those of others are no business of ours: one of them may
// never be served.
func waitForCRDs(ctx context.Context, c client.Client) error {
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var crds apiextensionsv1.CustomResourceDefinitionList
		if err := c.List(ctx, &crds); err != nil {
			return false, fmt.Errorf("list CustomResourceDefinitions: %w", err)
		}
		for _, crd := range crds.Items {
			if slices.Contains(ownGroups, crd.Spec.Group) && !established(&crd) {
				return false, nil
			}
		}
		return true, nil
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
