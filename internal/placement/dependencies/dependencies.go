// Package dependencies tells what else in its namespace a workload needs to run.
package dependencies

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// Reference names an object of the workload's namespace.
type Reference struct {
	Kind schema.GroupVersionKind
	Name string
	// Optional tells that the workload runs without it, too.
	Optional bool
}

// String names it for a person.
func (r Reference) String() string { return r.Kind.Kind + " " + r.Name }

// Kinds are those of what workloads refer to.
func Kinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{kind("ConfigMap"), kind("PersistentVolumeClaim"), kind("Secret"), kind("ServiceAccount")}
}

func kind(name string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(name) }

// Of returns what an object refers to in its pod template, each once, sorted; nothing for an object that has none. The account
// that every namespace has is not among it, and neither is what every cluster puts there by itself.
func Of(o *unstructured.Unstructured) ([]Reference, error) {
	path := []string{"spec", "template"}
	if o.GetKind() == "CronJob" {
		path = []string{"spec", "jobTemplate", "spec", "template"}
	}
	fields, found, err := unstructured.NestedMap(o.Object, path...)
	if err != nil || !found {
		return nil, nil //nolint:nilerr // what has no pod template refers to nothing
	}
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &template); err != nil {
		return nil, fmt.Errorf("read the pod template of %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	f := &finder{found: map[Reference]bool{}}
	f.pod(&template.Spec)
	return f.sorted(), nil
}

type finder struct {
	found map[Reference]bool // without Optional → whether it is needed
}

func (f *finder) add(kindName, name string, optional *bool) {
	if name == "" || kindName == "ServiceAccount" && name == "default" || kindName == "ConfigMap" && name == "kube-root-ca.crt" {
		return
	}
	r := Reference{Kind: kind(kindName), Name: name}
	f.found[r] = f.found[r] || !ptr.Deref(optional, false)
}

func (f *finder) sorted() []Reference {
	all := make([]Reference, 0, len(f.found))
	for r, needed := range f.found {
		r.Optional = !needed
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Reference) int {
		return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (f *finder) pod(spec *corev1.PodSpec) {
	f.add("ServiceAccount", spec.ServiceAccountName, nil)
	for i := range spec.ImagePullSecrets {
		f.add("Secret", spec.ImagePullSecrets[i].Name, ptr.To(true)) // kubelets go on without
	}
	for i := range spec.Volumes {
		f.volume(&spec.Volumes[i])
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			f.environment(containers[i].Env, containers[i].EnvFrom)
		}
	}
}

func (f *finder) volume(v *corev1.Volume) {
	switch {
	case v.ConfigMap != nil:
		f.add("ConfigMap", v.ConfigMap.Name, v.ConfigMap.Optional)
	case v.Secret != nil:
		f.add("Secret", v.Secret.SecretName, v.Secret.Optional)
	case v.PersistentVolumeClaim != nil:
		f.add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName, nil)
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		f.add("Secret", v.CSI.NodePublishSecretRef.Name, nil)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			source := &v.Projected.Sources[i]
			if source.ConfigMap != nil {
				f.add("ConfigMap", source.ConfigMap.Name, source.ConfigMap.Optional)
			}
			if source.Secret != nil {
				f.add("Secret", source.Secret.Name, source.Secret.Optional)
			}
		}
	}
}

func (f *finder) environment(variables []corev1.EnvVar, sources []corev1.EnvFromSource) {
	for i := range variables {
		from := variables[i].ValueFrom
		if from == nil {
			continue
		}
		if from.ConfigMapKeyRef != nil {
			f.add("ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Optional)
		}
		if from.SecretKeyRef != nil {
			f.add("Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Optional)
		}
	}
	for i := range sources {
		if sources[i].ConfigMapRef != nil {
			f.add("ConfigMap", sources[i].ConfigMapRef.Name, sources[i].ConfigMapRef.Optional)
		}
		if sources[i].SecretRef != nil {
			f.add("Secret", sources[i].SecretRef.Name, sources[i].SecretRef.Optional)
		}
	}
}
