package v1

// Labels, annotations and finalizers that the public system defined. Tools written for it keep working.
const (
	// LabelParentPlacement names the placement of a snapshot, a binding or a Work. Its key says CRP for namespaced
	// placements too.
	LabelParentPlacement = "kubernetes-fleet.io/parent-CRP"
	// LabelIsLatestSnapshot is "true" on the newest snapshot of a placement and "false" on the others.
	LabelIsLatestSnapshot = "kubernetes-fleet.io/is-latest-snapshot"
	// LabelPolicyIndex is a policy snapshot's index, counted from 0.
	LabelPolicyIndex = "kubernetes-fleet.io/policy-index"
	// LabelResourceIndex is a resource snapshot's index, counted from 0; all parts of one snapshot share it.
	LabelResourceIndex = "kubernetes-fleet.io/resource-index"
	// LabelOverrideIndex is an override snapshot's index, counted from 0.
	LabelOverrideIndex = "kubernetes-fleet.io/override-index"
	// LabelParentOverride names, on an override snapshot, the override that it is a revision of.
	LabelParentOverride = "kubernetes-fleet.io/parent-resource-override"
	// LabelEnvelopeType, LabelEnvelopeName and LabelEnvelopeNamespace name, on a Work, the envelope whose data it carries.
	LabelEnvelopeType      = "kubernetes-fleet.io/envelope-work"
	LabelEnvelopeName      = "kubernetes-fleet.io/envelope-name"
	LabelEnvelopeNamespace = "kubernetes-fleet.io/envelope-namespace"
	// LabelParentBinding names the binding that a Work was rendered from.
	LabelParentBinding = "kubernetes-fleet.io/parent-resource-binding"
	// LabelParentNamespace is, on a Work of a namespaced placement, that placement's namespace.
	LabelParentNamespace = "kubernetes-fleet.io/parent-placement-namespace"
	// LabelParentSnapshotIndex is the index of the resource snapshot that a Work was rendered from.
	LabelParentSnapshotIndex = "kubernetes-fleet.io/parent-resource-snapshot-index"
	// LabelTargetUpdateRun names the run that an approval request belongs to.
	LabelTargetUpdateRun = "kubernetes-fleet.io/targetUpdateRun"
	// LabelTargetUpdatingStage names the stage that an approval request opens or closes.
	LabelTargetUpdatingStage = "kubernetes-fleet.io/targetUpdatingStage"
	// LabelTaskType is TaskTypeBeforeStage or TaskTypeAfterStage on an approval request.
	LabelTaskType = "kubernetes-fleet.io/taskType"
	// LabelIsLatestUpdateRunApproval is "true" on every approval request.
	LabelIsLatestUpdateRunApproval = "kubernetes-fleet.io/isLatestUpdateRunApproval"

	// AnnotationPlacementGeneration is, on a policy snapshot, the generation of the placement it was last seen to match.
	AnnotationPlacementGeneration = "kubernetes-fleet.io/CRP-generation"
	// AnnotationNumberOfClusters is, on a policy snapshot of type PickN, how many clusters are wanted now.
	AnnotationNumberOfClusters = "kubernetes-fleet.io/number-of-clusters"
	// AnnotationResourceHash is, on a master resource snapshot, the SHA-256 of the whole selection, in hex.
	AnnotationResourceHash = "kubernetes-fleet.io/resource-hash"
	// AnnotationSnapshotCount is, on a master resource snapshot, the number of objects that the snapshot is split into.
	AnnotationSnapshotCount = "kubernetes-fleet.io/number-of-resource-snapshots"
	// AnnotationEnvelopeCount is, on a master resource snapshot, the number of envelopes among the selected objects.
	AnnotationEnvelopeCount = "kubernetes-fleet.io/number-of-enveloped-object"
	// AnnotationSnapshotSubindex is the 0-based position of a snapshot part after the master.
	AnnotationSnapshotSubindex = "kubernetes-fleet.io/subindex-of-resource-snapshot"
	// AnnotationParentSnapshotName is, on a Work, the name of the resource snapshot object it carries.
	AnnotationParentSnapshotName = "kubernetes-fleet.io/parent-resource-snapshot-name"
	// AnnotationResourceOverrideHash and AnnotationClusterResourceOverrideHash are, on a Work, the SHA-256 in hex of its
	// binding's list of override snapshots of the one kind and of the other; they are absent where the list is empty.
	AnnotationResourceOverrideHash        = "kubernetes-fleet.io/parent-resource-override-snapshot-hash"
	AnnotationClusterResourceOverrideHash = "kubernetes-fleet.io/parent-cluster-resource-override-snapshot-hash"
	// AnnotationPreviousBindingState is, on an Unscheduled binding, the state it had before.
	AnnotationPreviousBindingState = "kubernetes-fleet.io/previous-binding-state"

	// AnnotationSpecHash is, on an object in a member, a hash of the manifest that it was applied from, where the apply
	// strategy asks for objects that were changed in the member to be left alone: it tells the hub's changes from others'.
	AnnotationSpecHash = "kubernetes-fleet.io/spec-hash"

	// FinalizerPlacementCleanup holds a placement until its snapshots are gone.
	FinalizerPlacementCleanup = "kubernetes-fleet.io/crp-cleanup"
	// FinalizerWorkCleanup holds a binding until its Works are gone, and a Work until its agent has removed or
	// released what it applied. The hub sets and lifts it; agents have no right to.
	FinalizerWorkCleanup = "kubernetes-fleet.io/work-cleanup"
	// FinalizerOverrideCleanup holds an override until its snapshots that no binding needs are gone, and no other is the
	// latest.
	FinalizerOverrideCleanup = "kubernetes-fleet.io/override-cleanup"
	// FinalizerUpdateRun holds an update run until its approval requests are gone.
	FinalizerUpdateRun = "kubernetes-fleet.io/stagedupdaterun-finalizer"
)

// Keys of our own, for what the public system lacks.
const (
	// LabelParentObject names, on a snapshot, a binding or a Work, the internal placement of the object that a policy claims
	// and that they belong to. They have no LabelParentPlacement.
	LabelParentObject = "fleetwright.io/parent-object"
	// AnnotationReplicas is, on a Work of an object that a policy claims, the cluster's share of the object's replicas.
	AnnotationReplicas = "fleetwright.io/replicas"
	// AnnotationNamespaceMadeFor is, on a namespace that an agent made in a member because an object that a policy placed needs it, the
	// name of that object's internal placement. Such a namespace is never deleted by the fleet.
	AnnotationNamespaceMadeFor = "fleetwright.io/namespace-made-for"
	// AnnotationUpdateRun is, on a binding, the name of the update run that last moved it; for people.
	AnnotationUpdateRun = "fleetwright.io/update-run"
	// AnnotationUpdateRunUID is, on a binding, the UID of the update run that last moved it.
	AnnotationUpdateRunUID = "fleetwright.io/update-run-uid"
	// AnnotationUpdateStarted is, on a binding, the RFC 3339 time at which that run, or a rolling update, last gave this cluster
	// something else.
	AnnotationUpdateStarted = "fleetwright.io/update-started"
	// AnnotationUpdateRetry is, on a binding, the number of the retry in which that run started this cluster; absent on its
	// first start.
	AnnotationUpdateRetry = "fleetwright.io/update-retry"
	// AnnotationPlacementUID is, on snapshots, bindings and Works, the UID of the placement that they belong to, so that
	// a placement deleted and made again under its name never adopts what the first one left.
	AnnotationPlacementUID = "fleetwright.io/placement-uid"
	// AnnotationWorkCount is, on a Work, the number of Works that its binding's snapshot is carried by: an agent removes
	// nothing before it has seen them all.
	AnnotationWorkCount = "fleetwright.io/work-count"
	// AnnotationContentHash is, on a Work, a hash of all that its manifests were rendered from: while it is as it should
	// be, the manifests are, and nobody needs to read them.
	AnnotationContentHash = "fleetwright.io/content-hash"
	// AnnotationWrittenGeneration is, on a Work, the metadata.generation that its spec has as the hub wrote it. One of another
	// generation was changed by somebody else: it is written again, and what is said of it until then does not count.
	AnnotationWrittenGeneration = "fleetwright.io/written-generation"
	// AnnotationClusterUID is, on a binding, the UID of the MemberCluster it was made for, so that a cluster that left and
	// joined again under its name starts anew, with whatever its placement's strategy says about newcomers.
	AnnotationClusterUID = "fleetwright.io/member-cluster-uid"
	// AnnotationAvailable is, on resource snapshots that were available in every selected cluster, a number: the greatest
	// is on the one that was so last, which is never pruned.
	AnnotationAvailable = "fleetwright.io/available-everywhere"
	// AnnotationPartOf is, on a part of a resource snapshot other than the master, the hash of the whole selection that it
	// is a part of, so that what a hub left half-made is finished with the same content or not at all.
	AnnotationPartOf = "fleetwright.io/part-of"
	// AnnotationRemovalConfirmed is "true" on a Work that the hub deletes on purpose, set before it is deleted. An agent
	// removes workloads for such a Work only; one that is deleted in any other way, with its namespace for example, is an
	// accident: the workloads stay, and the Work that the hub makes again takes them over in place.
	AnnotationRemovalConfirmed = "fleetwright.io/removal-confirmed"
	// AnnotationEvictedBy is, on a binding, the UID of the eviction by which the hub deletes it: set before it is deleted, so
	// that the deletion is known to be meant and what was placed is removed.
	AnnotationEvictedBy = "fleetwright.io/evicted-by"
	// RemovalAbandons is AnnotationRemovalConfirmed's value on a Work that the hub deletes on purpose and whose objects are to
	// stay: the agent takes the owner off them. An agent that does not know it removes nothing either.
	RemovalAbandons = "abandon"
	// AnnotationEnvelopes is, on a master resource snapshot, where its envelopes are: for each the number of its part, a colon,
	// and what the name of its Work ends with, with commas between.
	AnnotationEnvelopes = "fleetwright.io/envelopes"
	// AnnotationEnvelopeRefused is, on a Work, why entries of its envelope are not in it.
	AnnotationEnvelopeRefused = "fleetwright.io/envelope-refused"
	// AnnotationOverrideFailed is, on a Work, which of its objects could not be overridden and why, as JSON: a list of objects
	// with resourceIdentifier and message, as many as have room. They are in it as they were before, or not at all.
	AnnotationOverrideFailed = "fleetwright.io/override-failed"
	// AnnotationAppliedOverrides is, on the first Work of a binding that has overrides, which, as JSON: a binding that somebody
	// deleted is made again with them.
	AnnotationAppliedOverrides = "fleetwright.io/applied-overrides"
	// AnnotationInRelease names, on a Kruise Rollout of the hub, the clusters in which it is in the middle of a release, in order and
	// separated by commas. The hub alone keeps it; it is not carried to members. While it stands, the Rollout cannot be deleted.
	AnnotationInRelease = "fleetwright.io/in-release"
	// AnnotationDeleteInRelease, "true" on a Kruise Rollout or its Deployment, allows to delete it in the middle of a release: on the hub,
	// and in a member, whose copy carries it.
	AnnotationDeleteInRelease = "fleetwright.io/delete-in-release"
	// AnnotationHeldObjects is, on a Work, a JSON list of identifiers of objects that it does not have because they could not be
	// overridden, and that agents leave as they are if they have placed them; or HeldAll, where they would be too many to list.
	AnnotationHeldObjects = "fleetwright.io/held-objects"
	// FinalizerAppliedWork holds an AppliedWork until its agent has itself removed or released what it owns, so that
	// deleting the object or its CRD never cascades into workloads.
	FinalizerAppliedWork = "fleetwright.io/applied-work"
)

const (
	// TaskTypeBeforeStage is LabelTaskType's value for an approval that opens a stage.
	TaskTypeBeforeStage = "beforeStage"
	// TaskTypeAfterStage is LabelTaskType's value for an approval that ends a stage.
	TaskTypeAfterStage = "afterStage"
	// DeletionStageName is the name of the stage in which a run removes what is no longer scheduled.
	DeletionStageName = "kubernetes-fleet.io/deleteStage"
	// MemberNamespacePrefix and a cluster's name make the hub namespace of that cluster.
	MemberNamespacePrefix = "fleet-member-"
	// HeldAll is AnnotationHeldObjects' value where the agent is to leave all objects that the Work does not have.
	HeldAll = "*"
	// StatusFieldManager is the name under which the hub writes the status of objects that users placed.
	StatusFieldManager = "fleetwright-status"
	// LabelAggregateToHubStatus, "true" on a ClusterRole, gives its rules to the hub: the statuses that it may write.
	LabelAggregateToHubStatus = "fleetwright.io/aggregate-to-hub-status"
	// FieldManager is the name under which agents apply objects in members.
	FieldManager = "work-api-agent"
)
