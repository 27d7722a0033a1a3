package render

import (
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Revise returns content in which workloads run a cluster's share of their replicas; without a share it returns it as it is.
// The content that it was given stays as it was.
func Revise(content []placementv1.ResourceContent, replicas *int32) ([]placementv1.ResourceContent, error) {
	if replicas == nil {
		return content, nil
	}
	revised := slices.Clone(content)
	for i := range revised {
		id, err := Identify(revised[i].Raw)
		if err != nil || !placement.HasReplicas(schema.GroupKind{Group: id.Group, Kind: id.Kind}) {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(revised[i].Raw); err != nil {
			return nil, fmt.Errorf("read %s %s to give it its replicas: %w", id.Kind, id.Name, err)
		}
		if err := placement.SetReplicas(o, replicas); err != nil {
			return nil, err
		}
		raw, err := o.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("write %s %s with its replicas: %w", id.Kind, id.Name, err)
		}
		revised[i].Raw = raw
	}
	return revised, nil
}
