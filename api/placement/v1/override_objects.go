package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

type (
	// OverrideObject is a ClusterResourceOverride or a ResourceOverride.
	// +kubebuilder:object:generate=false
	OverrideObject interface {
		Object
		// NewSnapshot makes a snapshot of the override as it is, without metadata but for the namespace.
		NewSnapshot() OverrideSnapshotObject
	}
	// OverrideSnapshotObject is a snapshot of one of them.
	// +kubebuilder:object:generate=false
	OverrideSnapshotObject interface {
		Object
		// OverridePlacement is the placement that the override is for; nil for all.
		OverridePlacement() *PlacementRef
		// OverrideSelectors name the objects. Those of a ResourceOverride are in its namespace.
		OverrideSelectors() []ResourceOverrideSelector
		// OverridePolicy is what to change; nil where there is nothing.
		OverridePolicy() *OverridePolicy
		// OverrideHash stands for the content.
		OverrideHash() string
	}
)

// NewSnapshot makes a snapshot of the override.
func (o *ClusterResourceOverride) NewSnapshot() OverrideSnapshotObject {
	s := &ClusterResourceOverrideSnapshot{}
	s.Spec.OverrideSpec, s.Spec.OverrideHash = *o.Spec.DeepCopy(), hashOf(o.Spec)
	return s
}

// NewSnapshot makes a snapshot of the override.
func (o *ResourceOverride) NewSnapshot() OverrideSnapshotObject {
	s := &ResourceOverrideSnapshot{}
	s.Namespace = o.Namespace
	s.Spec.OverrideSpec, s.Spec.OverrideHash = *o.Spec.DeepCopy(), hashOf(o.Spec)
	return s
}

func hashOf(spec any) []byte {
	text, err := json.Marshal(spec)
	if err != nil {
		panic("encode an override: " + err.Error()) // an API type, which was decoded from JSON
	}
	sum := sha256.Sum256(text)
	return []byte(hex.EncodeToString(sum[:]))
}

// OverridePlacement returns the placement that the override is for.
func (o *ClusterResourceOverrideSnapshot) OverridePlacement() *PlacementRef {
	return o.Spec.OverrideSpec.Placement
}

// OverrideSelectors returns the objects' names.
func (o *ClusterResourceOverrideSnapshot) OverrideSelectors() []ResourceOverrideSelector {
	selectors := make([]ResourceOverrideSelector, 0, len(o.Spec.OverrideSpec.ClusterResourceSelectors))
	for i := range o.Spec.OverrideSpec.ClusterResourceSelectors {
		s := &o.Spec.OverrideSpec.ClusterResourceSelectors[i]
		selectors = append(selectors, ResourceOverrideSelector{Group: s.Group, Version: s.Version, Kind: s.Kind, Name: s.Name})
	}
	return selectors
}

// OverridePolicy returns what to change.
func (o *ClusterResourceOverrideSnapshot) OverridePolicy() *OverridePolicy {
	return o.Spec.OverrideSpec.Policy
}

// OverrideHash stands for the content.
func (o *ClusterResourceOverrideSnapshot) OverrideHash() string { return string(o.Spec.OverrideHash) }

// OverridePlacement returns the placement that the override is for.
func (o *ResourceOverrideSnapshot) OverridePlacement() *PlacementRef {
	return o.Spec.OverrideSpec.Placement
}

// OverrideSelectors returns the objects' names.
func (o *ResourceOverrideSnapshot) OverrideSelectors() []ResourceOverrideSelector {
	return o.Spec.OverrideSpec.ResourceSelectors
}

// OverridePolicy returns what to change.
func (o *ResourceOverrideSnapshot) OverridePolicy() *OverridePolicy {
	return o.Spec.OverrideSpec.Policy
}

// OverrideHash stands for the content.
func (o *ResourceOverrideSnapshot) OverrideHash() string { return string(o.Spec.OverrideHash) }
