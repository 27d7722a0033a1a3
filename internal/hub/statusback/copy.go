package statusback

import (
	"context"
	"errors"
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/render"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ofTheHub are kinds whose status the hub's own API server or controllers write, and that say nothing of a member.
var ofTheHub = map[schema.GroupKind]bool{
	placement.NamespaceKind:    true,
	{Kind: "ResourceQuota"}:    true,
	{Kind: "PersistentVolume"}: true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:           true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                       true,
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}:           true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:  true,
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                           true,
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}:         true,
}

// copyAll copies all statuses that the origin's Work carries, and returns why those are not copied that are not. One that fails
// holds up no other.
func (c *Controller) copyAll(ctx context.Context, from *origin) (refused []string, err error) {
	var failures []error
	applied := content{controller: c, origin: from}
	done := c.memory.begin(from)
	for i := range from.work.Status.ManifestConditions {
		m := &from.work.Status.ManifestConditions[i]
		kind := schema.GroupKind{Group: m.Identifier.Group, Kind: m.Identifier.Kind}
		if m.BackReportedStatus == nil || ofTheHub[kind] || placement.NeverPlaced(kind) != "" || !isApplied(m, from.work.Generation) {
			continue
		}
		mark := markOf(from.work, m)
		if done.rely(mark) {
			continue
		}
		uid, why, err := c.copyOne(ctx, &applied, m, done.before[mark])
		switch {
		case err != nil:
			failures = append(failures, err)
		case why != "":
			refused = append(refused, why)
		default:
			done.now[mark] = uid
		}
	}
	done.end()
	return refused, errors.Join(failures...)
}

// isApplied tells whether the member has an object as the Work is now. What it says of an earlier generation may be of what the
// object was before.
func isApplied(m *placementv1.ManifestCondition, generation int64) bool {
	c := meta.FindStatusCondition(m.Conditions, placementv1.ConditionApplied)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == generation
}

// copyOne copies the status of one object, if it differs, or tells why that cannot be done. It returns the object's UID. An object
// that has been given this very status before is left alone: should two placements report to it, they do not fight.
func (c *Controller) copyOne(ctx context.Context, applied *content, m *placementv1.ManifestCondition, had types.UID) (uid types.UID, refused string, err error) {
	id := &m.Identifier
	name := nameOf(id)
	reported := &unstructured.Unstructured{}
	if err := reported.UnmarshalJSON(m.BackReportedStatus.ObservedStatus.Raw); err != nil {
		return "", fmt.Sprintf("%s: the agent's report is no status: %v", name, err), nil
	}
	status, _, err := unstructured.NestedMap(reported.Object, "status")
	if err != nil || len(status) == 0 {
		return "", "", nil //nolint:nilerr // a status that is no object is none
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind})
	err = c.APIReader.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || (err == nil && !live.GetDeletionTimestamp().IsZero()) {
		return "", "", nil // it is gone, and so it soon is in the member
	}
	if err != nil {
		return "", "", fmt.Errorf("read %s, whose status is to be copied: %w", name, err)
	}
	if had != "" && had == live.GetUID() {
		return had, "", nil
	}
	if by := placement.StatusWriter(live); by != "" {
		return "", fmt.Sprintf("%s: its status is written on the hub itself, by %s; it is left alone", name, by), nil
	}
	manifest, err := applied.of(ctx, id)
	if err != nil {
		return "", "", err
	}
	g := generations{member: m.BackReportedStatus.ObservedInMemberClusterGeneration, hub: live.GetGeneration()}
	g.current = manifest != nil && sameContent(manifest, live)
	before, _, _ := unstructured.NestedMap(live.Object, "status")
	wanted := g.translate(status, before)
	if equality.Semantic.DeepEqual(wanted, before) {
		return live.GetUID(), "", nil
	}
	live.Object["status"] = wanted
	refused, err = c.write(ctx, id, live)
	return live.GetUID(), refused, err
}

// write writes the status of an object on the hub.
func (c *Controller) write(ctx context.Context, id *placementv1.WorkResourceIdentifier, live *unstructured.Unstructured) (refused string, err error) {
	err = c.Client.Status().Update(ctx, live, client.FieldOwner(placementv1.StatusFieldManager))
	switch {
	case err == nil:
		return "", nil
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the hub may not update %s/status in API group %q; give it that right by a ClusterRole with the label %s: \"true\" "+
			"(docs/report-back.md), after which this is tried again within a minute", id.Resource, id.Group, placementv1.LabelAggregateToHubStatus), nil
	case apierrors.IsNotFound(err):
		if err := c.APIReader.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
			return "", client.IgnoreNotFound(err) // it has just gone
		}
		return nameOf(id) + " has no status that can be written on the hub: the kind has no subresource status there; add it to its definition", nil
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Sprintf("%s: the hub's API server does not take the member's status: %v", nameOf(id), err), nil
	default:
		return "", fmt.Errorf("write the status of %s: %w", nameOf(id), err)
	}
}

func nameOf(id *placementv1.WorkResourceIdentifier) string {
	return placement.ObjectName(id.Kind, id.Namespace, id.Name)
}

// content is what the placement has of the objects of a Work, before overrides: what they said on the hub when that was taken.
type content struct {
	controller *Controller
	*origin
	read     bool
	byObject map[placementv1.ResourceIdentifier]*unstructured.Unstructured
}

// of returns an object's manifest; nil where that is not known.
func (t *content) of(ctx context.Context, id *placementv1.WorkResourceIdentifier) (*unstructured.Unstructured, error) {
	if !t.read {
		if err := t.fill(ctx); err != nil {
			return nil, err
		}
		t.read = true
	}
	return t.byObject[placementv1.ResourceIdentifier{Group: id.Group, Version: id.Version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}], nil
}

func (t *content) fill(ctx context.Context) error {
	t.byObject = map[placementv1.ResourceIdentifier]*unstructured.Unstructured{}
	resources, annotations := t.work.Spec.Workload.Manifests, t.work.Annotations
	if annotations[placementv1.AnnotationOverrideFailed] != "" {
		return nil // some of it is what an earlier snapshot said
	}
	if annotations[placementv1.AnnotationResourceOverrideHash]+annotations[placementv1.AnnotationClusterResourceOverrideHash] != "" {
		s := t.kinds.NewResourceSnapshot()
		name := annotations[placementv1.AnnotationParentSnapshotName]
		if err := t.controller.APIReader.Get(ctx, client.ObjectKey{Namespace: t.placement.GetNamespace(), Name: name}, s); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read resource snapshot %s: %w", name, err)
		}
		resources = s.ResourceSnapshotSpec().SelectedResources
	}
	for i := range resources {
		id, err := render.Identify(resources[i].Raw)
		if err != nil {
			continue
		}
		o := &unstructured.Unstructured{}
		if o.UnmarshalJSON(resources[i].Raw) == nil {
			t.byObject[id] = o
		}
	}
	return nil
}
