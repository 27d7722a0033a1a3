package kruise

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// needed are the kinds of Kruise's manifests that a cluster needs when Kruise runs outside of it.
var needed = map[string]schema.GroupVersionResource{
	"Namespace":                      {Version: "v1", Resource: "namespaces"},
	"CustomResourceDefinition":       crds,
	"MutatingWebhookConfiguration":   {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	"ValidatingWebhookConfiguration": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
}

// SelectManifests returns those of Kruise's rendered manifests that a cluster needs when Kruise runs outside of it.
func SelectManifests(rendered []byte) ([]byte, error) {
	all, err := decode(rendered)
	if err != nil {
		return nil, fmt.Errorf("reading Kruise's manifests: %w", err)
	}
	var selected bytes.Buffer
	found := map[string]bool{}
	for _, object := range all {
		if _, ok := needed[object.GetKind()]; !ok {
			continue
		}
		found[object.GetKind()] = true
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		fmt.Fprintf(&selected, "---\n%s", content)
	}
	for kind := range needed {
		if !found[kind] {
			return nil, fmt.Errorf("no %s among the manifests of Kruise", kind)
		}
	}
	return selected.Bytes(), nil
}

// Install creates what the cluster lacks of the manifests in a file, and waits until it serves their kinds. What is
// there stays as it is: Kruise has written its own address into it.
func Install(ctx context.Context, client dynamic.Interface, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading Kruise's manifests: %w", err)
	}
	objects, err := decode(content)
	if err != nil {
		return fmt.Errorf("reading Kruise's manifests from %s: %w", path, err)
	}
	for _, object := range objects {
		_, err := client.Resource(needed[object.GetKind()]).Create(ctx, object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if err := waitEstablished(ctx, client, object.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// waitEstablished waits until the API server serves the kind of a CustomResourceDefinition.
func waitEstablished(ctx context.Context, client dynamic.Interface, name string) error {
	resource := client.Resource(crds)
	byName := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = "metadata.name=" + name
		return o
	}
	definitions := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, byName(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return resource.Watch(ctx, byName(o))
		},
	}, client)
	_, err := watchtools.UntilWithSync(ctx, definitions, &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
		definition, ok := event.Object.(*unstructured.Unstructured)
		return ok && established(definition), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for CustomResourceDefinition %s to be established: %w", name, err)
	}
	return nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "Established" {
			return condition["status"] == "True"
		}
	}
	return false
}

// decode reads a stream of YAML documents.
func decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objects)+1, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("document %d: %w", len(objects)+1, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
