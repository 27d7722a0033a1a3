package v1

// Conditions of a ClusterResourcePlacement; a namespaced placement has the same without "Cluster". The suffix is the
// type of the condition that each cluster's row and binding has.
const (
	// ClusterPlacementConditionPrefix goes before the per-cluster condition types on a ClusterResourcePlacement.
	ClusterPlacementConditionPrefix = "ClusterResourcePlacement"
	// NamespacedPlacementConditionPrefix goes before them on a ResourcePlacement.
	NamespacedPlacementConditionPrefix = "ResourcePlacement"
	// ConditionScheduled: were clusters found as the policy asks?
	ConditionScheduled = "Scheduled"
	// ConditionRolloutStarted: may the cluster receive the snapshot yet?
	ConditionRolloutStarted = "RolloutStarted"
	// ConditionOverridden: were the overrides for the cluster computed?
	ConditionOverridden = "Overridden"
	// ConditionWorkSynchronized: have the Works in the cluster's namespace been written?
	ConditionWorkSynchronized = "WorkSynchronized"
	// ConditionApplied: has the member applied every object?
	ConditionApplied = "Applied"
	// ConditionAvailable: is every object available in the member?
	ConditionAvailable = "Available"
	// ConditionDiffReported: has the member said in what it differs? In place of Applied and Available, where nothing is written.
	ConditionDiffReported = "DiffReported"
	// ConditionStatusTrimmed, on a Work: was something left out of the status, to keep it small?
	ConditionStatusTrimmed = "StatusTrimmed"
	// ConditionStatusSynced, on a ClusterResourcePlacement: is its status in the namespace that it selects, too?
	ConditionStatusSynced = "StatusSynced"
	// ConditionRemoved, on a Work that is being deleted: has the agent removed or released what it applied?
	ConditionRemoved = "Removed"
)

// Reasons of Scheduled.
const (
	// ReasonSchedulePending: the scheduler has not yet answered for this generation.
	ReasonSchedulePending = "SchedulePending"
	// ReasonSchedulingPolicyFulfilled: all clusters that the policy asks for were found.
	ReasonSchedulingPolicyFulfilled = "SchedulingPolicyFulfilled"
	// ReasonSchedulingPolicyUnfulfilled: fewer clusters were found than the policy asks for.
	ReasonSchedulingPolicyUnfulfilled = "SchedulingPolicyUnfulfilled"
	// ReasonInvalidResourceSelectors: the selectors cannot be resolved; the message names selector and remedy.
	ReasonInvalidResourceSelectors = "InvalidResourceSelectors"
	// ReasonResourceSelectionIncomplete: something could not be read, so the selection is not known and nothing changes.
	ReasonResourceSelectionIncomplete = "ResourceSelectionIncomplete"
	// ReasonScheduled: this cluster was chosen.
	ReasonScheduled = "Scheduled"
	// ReasonScheduleFailed: no cluster was found for one of those that the policy asks for.
	ReasonScheduleFailed = "ScheduleFailed"
)

// Reasons of StatusSynced.
const (
	// ReasonStatusSyncSucceeded: the copy of the status is as the status.
	ReasonStatusSyncSucceeded = "StatusSyncSucceeded"
	// ReasonStatusSyncFailed: the copy could not be written; the message says why.
	ReasonStatusSyncFailed = "StatusSyncFailed"
)

// Reasons of RolloutStarted.
const (
	// ReasonRolloutStarted: the cluster was given the snapshot.
	ReasonRolloutStarted = "RolloutStarted"
	// ReasonRolloutNotStartedYet: the rollout strategy holds the cluster back.
	ReasonRolloutNotStartedYet = "RolloutNotStartedYet"
	// ReasonRolloutStartedUnknown: not yet decided.
	ReasonRolloutStartedUnknown = "RolloutStartedUnknown"
	// ReasonRolloutControlledByExternalController: the cluster waits for an update run.
	ReasonRolloutControlledByExternalController = "RolloutControlledByExternalController"
)

// Reasons of Overridden and WorkSynchronized.
const (
	// ReasonNoOverrideSpecified: there is nothing to override.
	ReasonNoOverrideSpecified = "NoOverrideSpecified"
	// ReasonOverriddenSucceeded: all overrides for the cluster were applied.
	ReasonOverriddenSucceeded = "OverriddenSucceeded"
	// ReasonOverriddenFailed: overrides could not be computed for some cluster.
	ReasonOverriddenFailed = "OverriddenFailed"
	// ReasonOverriddenPending: overrides are not computed yet.
	ReasonOverriddenPending = "OverriddenPending"
	// ReasonWorkSynchronized: Works are written (placement).
	ReasonWorkSynchronized = "WorkSynchronized"
	// ReasonWorkNotSynchronizedYet: some Works are not written yet (placement).
	ReasonWorkNotSynchronizedYet = "WorkNotSynchronizedYet"
	// ReasonWorkSynchronizedUnknown: not yet known (placement).
	ReasonWorkSynchronizedUnknown = "WorkSynchronizedUnknown"
	// ReasonAllWorkSynced: all Works are written (binding).
	ReasonAllWorkSynced = "AllWorkSynced"
	// ReasonSyncWorkFailed: a Work could not be written; the message says why (binding).
	ReasonSyncWorkFailed = "SyncWorkFailed"
)

// Reasons of Applied.
const (
	// ReasonApplySucceeded: applied in all clusters (placement).
	ReasonApplySucceeded = "ApplySucceeded"
	// ReasonApplyFailed: a cluster could not apply; failedPlacements says what (placement).
	ReasonApplyFailed = "ApplyFailed"
	// ReasonApplyPending: members have not answered yet.
	ReasonApplyPending = "ApplyPending"
	// ReasonAllWorkHaveBeenApplied: every Work is applied (binding).
	ReasonAllWorkHaveBeenApplied = "AllWorkHaveBeenApplied"
	// ReasonApplyInProgress: the member has not answered for this generation yet (binding).
	ReasonApplyInProgress = "ApplyInProgress"
	// ReasonNotAllWorkHaveBeenApplied: the member could not apply a Work (binding).
	ReasonNotAllWorkHaveBeenApplied = "NotAllWorkHaveBeenApplied"
	// ReasonAllManifestsApplied: every manifest is applied (Work).
	ReasonAllManifestsApplied = "AllManifestsApplied"
	// ReasonSomeManifestsAreNotApplied: a manifest is not applied (Work).
	ReasonSomeManifestsAreNotApplied = "SomeManifestsAreNotApplied"
)

// Reasons of Available.
const (
	// ReasonResourceAvailable: available in all clusters (placement).
	ReasonResourceAvailable = "ResourceAvailable"
	// ReasonResourceNotAvailableYet: not yet available in some cluster (placement).
	ReasonResourceNotAvailableYet = "ResourceNotAvailableYet"
	// ReasonResourceAvailableUnknown: not yet known (placement).
	ReasonResourceAvailableUnknown = "ResourceAvailableUnknown"
	// ReasonAllWorkAreAvailable: every Work is available (binding).
	ReasonAllWorkAreAvailable = "AllWorkAreAvailable"
	// ReasonNotAllWorkAreAvailable: a Work is not yet available (binding).
	ReasonNotAllWorkAreAvailable = "NotAllWorkAreAvailable"
	// ReasonNotAllWorkAreAvailabilityTrackable: available as far as can be told (binding).
	ReasonNotAllWorkAreAvailabilityTrackable = "NotAllWorkAreAvailabilityTrackable"
	// ReasonAvailableUnknown: every Work was available when the member was last heard of, which is not connected to the fleet now
	// (binding).
	ReasonAvailableUnknown = "AvailableUnknown"
	// ReasonAllManifestsAvailable: every manifest is available (Work).
	ReasonAllManifestsAvailable = "AllManifestsAvailable"
	// ReasonSomeManifestsAreNotAvailable: a manifest is not available (Work).
	ReasonSomeManifestsAreNotAvailable = "SomeManifestsAreNotAvailable"
	// ReasonWorkNotTrackable: all that can be tracked is available, and something cannot be tracked (Work).
	ReasonWorkNotTrackable = "WorkNotTrackable"
)

// Reasons of DiffReported.
const (
	// ReasonDiffReportingCompleted: all clusters have reported (placement).
	ReasonDiffReportingCompleted = "DiffReportingCompleted"
	// ReasonDiffReportingIncompleteOrFailed: a cluster could not compare everything (placement).
	ReasonDiffReportingIncompleteOrFailed = "DiffReportingIncompleteOrFailed"
	// ReasonDiffReportingPending: members have not answered yet (placement).
	ReasonDiffReportingPending = "DiffReportingPending"
	// ReasonAllWorkHaveDiffReported: every Work was compared (binding).
	ReasonAllWorkHaveDiffReported = "AllWorkHaveDiffReported"
	// ReasonDiffReportInProgress: the member has not answered for this generation yet (binding).
	ReasonDiffReportInProgress = "DiffReportInProgress"
	// ReasonNotAllWorkHaveDiffReported: the member could not compare a Work (binding).
	ReasonNotAllWorkHaveDiffReported = "NotAllWorkHaveDiffReported"
	// ReasonAllManifestsDiffReported: every manifest was compared (Work).
	ReasonAllManifestsDiffReported = "AllManifestsDiffReported"
	// ReasonSomeManifestsHaveNotReportedDiff: a manifest could not be compared (Work).
	ReasonSomeManifestsHaveNotReportedDiff = "SomeManifestsHaveNotReportedDiff"
	// ReasonManifestNoDiffFound: the member's object is as the hub has it (manifest).
	ReasonManifestNoDiffFound = "NoDiffFound"
	// ReasonManifestFoundDiff: it differs; diffDetails says in what (manifest).
	ReasonManifestFoundDiff = "FoundDiff"
	// ReasonManifestFoundDiffInDegradedMode: it differs from the manifest as it stands; the member could not say how it would
	// take the manifest, so that some of the differences may be defaults of its own (manifest).
	ReasonManifestFoundDiffInDegradedMode = "FoundDiffInDegradedMode"
	// ReasonManifestFailedToReportDiff: it could not be compared; the message says why (manifest).
	ReasonManifestFailedToReportDiff = "FailedToReportDiff"
	// ReasonOversized, of StatusTrimmed: the whole would be larger than a status may be.
	ReasonOversized = "Oversized"
)

// Reasons of a manifest's Applied.
const (
	// ReasonManifestApplied: applied.
	ReasonManifestApplied = "Applied"
	// ReasonManifestDecodingErred: not a Kubernetes object, or of a kind that the member does not know.
	ReasonManifestDecodingErred = "DecodingErred"
	// ReasonManifestFoundGenerateName: has a generateName and no name.
	ReasonManifestFoundGenerateName = "FoundGenerateName"
	// ReasonManifestDuplicated: the same object stands earlier in the Work.
	ReasonManifestDuplicated = "Duplicated"
	// ReasonManifestFailedToFindObject: the member could not be asked for the object.
	ReasonManifestFailedToFindObject = "FailedToFindObjInMemberCluster"
	// ReasonManifestFailedToTakeOver: another placement, or something else, owns the object; or it differs, and is to be taken
	// over only if it does not.
	ReasonManifestFailedToTakeOver = "FailedToTakeOver"
	// ReasonManifestNotTakenOver: the object was in the member before, and is not to be taken over.
	ReasonManifestNotTakenOver = "NotTakenOver"
	// ReasonManifestFailedToRunDriftDetection: the object could not be compared, so that nothing was written.
	ReasonManifestFailedToRunDriftDetection = "FailedToRunDriftDetection"
	// ReasonManifestFoundDrifts: somebody changed the object in the member; driftDetails says what. It is left as it is.
	ReasonManifestFoundDrifts = "FoundDrifts"
	// ReasonManifestFoundDriftsInDegradedMode: the same, by the manifest as it stands.
	ReasonManifestFoundDriftsInDegradedMode = "FoundDriftsInDegradedMode"
	// ReasonManifestAppliedWithFailedDriftDetection: applied, but then it could not be compared (True).
	ReasonManifestAppliedWithFailedDriftDetection = "AppliedWithFailedDriftDetection"
	// ReasonManifestApplyFailed: the member refused the object; the message is its own error.
	ReasonManifestApplyFailed = "ManifestApplyFailed"
	// ReasonManifestPreparing: about to be applied.
	ReasonManifestPreparing = "PreparingToProcess"
	// ReasonManifestWaitingForRollout: all but the pod template is applied; that waits until a Kruise Rollout can take it in hand,
	// as a rule for seconds. The message says what it waits for.
	ReasonManifestWaitingForRollout = "WaitingForRollout"
	// ReasonManifestRolloutMissing: all but the pod template is applied; that is held back, since a Rollout is to release it and
	// Kruise Rollouts is not installed in the member.
	ReasonManifestRolloutMissing = "RolloutMissing"
)

// IsAboutToBeApplied tells of the reason of a manifest's Applied, which is False, whether that passes by itself: it is no failure.
func IsAboutToBeApplied(reason string) bool {
	return reason == ReasonManifestPreparing || reason == ReasonManifestWaitingForRollout
}

// Reasons of a manifest's Available.
const (
	// ReasonManifestAvailable: available.
	ReasonManifestAvailable = "Available"
	// ReasonManifestNotTrackable: nothing tells whether it is available; taken as available.
	ReasonManifestNotTrackable = "NotTrackable"
	// ReasonManifestNotAvailableYet: not yet available; the message says what is missing.
	ReasonManifestNotAvailableYet = "ManifestNotAvailableYet"
	// ReasonManifestPaused: not yet available, and will not be before somebody goes on with it: it is paused.
	ReasonManifestPaused = "ManifestPaused"
	// ReasonManifestUpdatedByRollout: not yet available; a Kruise Rollout updates it, and tells whether that waits for somebody.
	ReasonManifestUpdatedByRollout = "ManifestUpdatedByRollout"
	// ReasonManifestAvailabilityFailed: the availability could not be told.
	ReasonManifestAvailabilityFailed = "Failed"
)

// Reasons of a Work's Removed.
const (
	// ReasonResourcesRemoved: nothing that the Work placed is held for it any more.
	ReasonResourcesRemoved = "ResourcesRemoved"
	// ReasonResourcesReleased: objects were left in the member on purpose; the message says which and why.
	ReasonResourcesReleased = "ResourcesReleased"
	// ReasonRemovalNotConfirmed, on Removed True: the Work was deleted without the hub's confirmation, an accident, so
	// nothing was touched; the hub makes the Work again, or confirms.
	ReasonRemovalNotConfirmed = "RemovalNotConfirmed"
	// ReasonRemovalInProgress: objects are still being deleted; the message names them.
	ReasonRemovalInProgress = "RemovalInProgress"
	// ReasonRemovalFailed: an object could not be removed; the message is the member's own error.
	ReasonRemovalFailed = "RemovalFailed"
)

// Condition types of update runs, their stages, clusters and tasks, and of approval requests.
const (
	// ConditionInitialized, on a run: was it planned?
	ConditionInitialized = "Initialized"
	// ConditionProgressing, on a run or a stage: is it moving, and if not, why?
	ConditionProgressing = "Progressing"
	// ConditionSucceeded, on a run, a stage or a cluster: how did it end?
	ConditionSucceeded = "Succeeded"
	// ConditionStarted, on a cluster: was its update started?
	ConditionStarted = "Started"
	// ConditionApprovalRequestCreated, on a task: does the request exist?
	ConditionApprovalRequestCreated = "ApprovalRequestCreated"
	// ConditionApprovalRequestApproved, on a task: was it approved?
	ConditionApprovalRequestApproved = "ApprovalRequestApproved"
	// ConditionWaitTimeElapsed, on a task: False from the moment the wait begins, True from its end.
	ConditionWaitTimeElapsed = "WaitTimeElapsed"
	// ConditionApproved, on an approval request: set by people.
	ConditionApproved = "Approved"
	// ConditionApprovalAccepted, on an approval request: the run has taken note; it cannot be taken back.
	ConditionApprovalAccepted = "ApprovalAccepted"
)

// Reasons of runs.
const (
	// ReasonUpdateRunInitialized: the plan is made.
	ReasonUpdateRunInitialized = "UpdateRunInitializedSuccessfully"
	// ReasonUpdateRunInitializationPending: something that may still come is missing; the message says what.
	ReasonUpdateRunInitializationPending = "UpdateRunInitializationPending"
	// ReasonUpdateRunInitializationFailed: no plan can be made; final.
	ReasonUpdateRunInitializationFailed = "UpdateRunInitializedFailed"
	// ReasonUpdateRunProgressing: clusters are being updated.
	ReasonUpdateRunProgressing = "UpdateRunProgressing"
	// ReasonUpdateRunWaiting: a gate is closed; the message names it.
	ReasonUpdateRunWaiting = "UpdateRunWaiting"
	// ReasonUpdateRunStuck: clusters cannot apply; the message names them.
	ReasonUpdateRunStuck = "UpdateRunStuck"
	// ReasonUpdateRunStopping: clusters in flight are finishing; no other starts.
	ReasonUpdateRunStopping = "UpdateRunStopping"
	// ReasonUpdateRunStopped: nothing is in flight; waits to be resumed.
	ReasonUpdateRunStopped = "UpdateRunStopped"
	// ReasonUpdateRunSucceeded: all stages are done.
	ReasonUpdateRunSucceeded = "UpdateRunSucceeded"
	// ReasonUpdateRunFailed: it cannot go on; the message says why. Where too many clusters failed, retrying or skipping them
	// lets it go on; else it is final.
	ReasonUpdateRunFailed = "UpdateRunFailed"
	// ReasonUpdateRunCancelled: somebody cancelled it; final; the message says who and why.
	ReasonUpdateRunCancelled = "UpdateRunCancelled"
)

// Reasons of stages, clusters, tasks and approval requests.
const (
	// ReasonStageUpdatingStarted: clusters of the stage are being updated.
	ReasonStageUpdatingStarted = "StageUpdatingStarted"
	// ReasonStageUpdatingWaiting: a gate of the stage is closed.
	ReasonStageUpdatingWaiting = "StageUpdatingWaiting"
	// ReasonStageUpdatingStopping: clusters in flight are finishing.
	ReasonStageUpdatingStopping = "StageUpdatingStopping"
	// ReasonStageUpdatingStopped: nothing is in flight; waits to be resumed.
	ReasonStageUpdatingStopped = "StageUpdatingStopped"
	// ReasonStageUpdatingSucceeded: clusters and gates are done.
	ReasonStageUpdatingSucceeded = "StageUpdatingSucceeded"
	// ReasonStageUpdatingFailed: the run failed in this stage.
	ReasonStageUpdatingFailed = "StageUpdatingFailed"
	// ReasonStageTooManyFailures: more clusters of the stage failed than its maxFailures allows, so that the run ended failed.
	ReasonStageTooManyFailures = "StageUpdatingTooManyFailures"
	// ReasonStageUpdatingCancelled: the run was cancelled in this stage.
	ReasonStageUpdatingCancelled = "StageUpdatingCancelled"
	// ReasonStageUpdatingSkippedNoClusters: the stage has no clusters.
	ReasonStageUpdatingSkippedNoClusters = "StageUpdatingSkippedNoClusters"

	// ReasonClusterUpdatingStarted: the cluster was given the snapshot.
	ReasonClusterUpdatingStarted = "ClusterUpdatingStarted"
	// ReasonClusterUpdatingSucceeded: all of it is available there.
	ReasonClusterUpdatingSucceeded = "ClusterUpdatingSucceeded"
	// ReasonClusterUpdatingFailed: the cluster was not done at its progressDeadline, or the run ended while it was in flight.
	ReasonClusterUpdatingFailed = "ClusterUpdatingFailed"
	// ReasonClusterUpdatingSkipped: the cluster left before it was done, or somebody skipped it.
	ReasonClusterUpdatingSkipped = "ClusterUpdatingSkipped"
	// ReasonClusterUpdatingRetried, of an event: somebody has the cluster started again.
	ReasonClusterUpdatingRetried = "ClusterUpdatingRetried"
	// ReasonClusterActionRefused, of an event: the run cannot do what somebody asked about a cluster; the message says why.
	ReasonClusterActionRefused = "ClusterActionRefused"

	// ReasonStageTaskWaiting: the wait has begun.
	ReasonStageTaskWaiting = "StageTaskWaiting"
	// ReasonStageTaskWaitTimeElapsed: the wait is over.
	ReasonStageTaskWaitTimeElapsed = "StageTaskWaitTimeElapsed"
	// ReasonStageTaskApprovalRequestCreated: the request exists.
	ReasonStageTaskApprovalRequestCreated = "StageTaskApprovalRequestCreated"
	// ReasonStageTaskApprovalRequestApproved: the request was approved.
	ReasonStageTaskApprovalRequestApproved = "StageTaskApprovalRequestApproved"

	// ReasonApprovalAccepted: the approval counts and cannot be taken back.
	ReasonApprovalAccepted = "ApprovalRequestApprovalAccepted"
	// ReasonApprovalRequestClosed, on ApprovalAccepted False: the run ended before anybody approved.
	ReasonApprovalRequestClosed = "ApprovalRequestClosed"
)

// Conditions and reasons of evictions.
const (
	// ConditionValid: is there something to evict?
	ConditionValid = "Valid"
	// ConditionExecuted: was it evicted?
	ConditionExecuted = "Executed"
	// ReasonEvictionValid: there is.
	ReasonEvictionValid = "ClusterResourcePlacementEvictionValid"
	// ReasonEvictionInvalid: there is not; final, the message says why.
	ReasonEvictionInvalid = "ClusterResourcePlacementEvictionInvalid"
	// ReasonEvictionExecuted: what was placed is being removed from the cluster.
	ReasonEvictionExecuted = "ClusterResourcePlacementEvictionExecuted"
	// ReasonEvictionNotExecuted: it was not evicted; final, the message says what blocks it.
	ReasonEvictionNotExecuted = "ClusterResourcePlacementEvictionNotExecuted"
)
