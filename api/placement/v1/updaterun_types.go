package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StageTaskType is a kind of gate before or after a stage.
// +kubebuilder:validation:Enum=TimedWait;Approval
type StageTaskType string

const (
	// StageTaskTypeTimedWait waits for a set time after the stage's clusters are done.
	StageTaskTypeTimedWait StageTaskType = "TimedWait"
	// StageTaskTypeApproval waits until somebody approves.
	StageTaskTypeApproval StageTaskType = "Approval"
)

// UpdateStrategySpec divides clusters into stages that are updated one after the other.
type UpdateStrategySpec struct {
	// stages are updated in this order; 1 to 31. Every cluster of the placement must be in exactly one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=31
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(s, self.exists_one(t, t.name == s.name))",message="stage names must be unique; give each stage a name of its own"
	Stages []StageConfig `json:"stages"`
}

// StageConfig is one stage.
type StageConfig struct {
	// name identifies the stage; at most 63 lower-case letters and digits. Approval requests are named by run and stage:
	// without dashes, two stages of two runs never share a request's name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+$')",message="a stage's name must be lower-case letters and digits only, such as canary or useast1; it can have no dash, since approval requests are named by run and stage"
	Name string `json:"name"`
	// labelSelector chooses the stage's clusters by their labels. Absent it chooses none, empty all.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// sortingLabelKey is a label with an integer by which the stage's clusters are ordered, smallest first; equal ones, and
	// after all others those without the label, go by name. Absent, all go by name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="sortingLabelKey must be a label key, such as order or example.com/order"
	SortingLabelKey *string `json:"sortingLabelKey,omitempty"`
	// maxConcurrency is how many clusters of the stage may be in flight at once: a number from 1 to 1000000, or a percentage of
	// the stage's clusters from 1% to 100%, rounded down, but never less than one cluster. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 1",message="maxConcurrency must be at least 1"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 1000000",message="maxConcurrency must be at most 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^(100|[1-9][0-9]?)%$')",message="maxConcurrency must be a number of clusters without quotes, such as 2, or a whole percentage from 1% to 100%, such as 50%"
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// maxFailures is how many clusters of the stage may fail, which is not to be done at their progressDeadline, while the run
	// goes on with the others: a number from 0 to 1000000, or a percentage of the stage's clusters from 0% to 100%, rounded
	// down. One more, and the run ends failed; it goes on when enough of them are retried or skipped. Absent, none
	// may fail.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="maxFailures must be at least 0"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 1000000",message="maxFailures must be at most 1000000"
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^(100|[1-9]?[0-9])%$')",message="maxFailures must be a number of clusters without quotes, such as 2, or a whole percentage from 0% to 100%, such as 10%"
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// progressDeadline is how long a cluster of the stage may take from its start until all is available there, in hours,
	// minutes and seconds, such as 10m; at least 1s, and at most 87600h. One that is not done by then has failed. Its clock
	// stands still while the run is stopped, and while all that the cluster waits for is somebody, such as for a Deployment
	// that is paused. Absent, clusters have all the time that they need, unless maxFailures is more than 0: then they have 10m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?[hms])+$')",message="progressDeadline must be hours, minutes and seconds, each a number and its unit h, m or s, such as 1h30m, 90s or 1.5h; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?[hms])+$') || (!self.matches('(^|[hms])([0-9]{6,}([.][0-9]+)?h|[0-9]{8,}([.][0-9]+)?m|[0-9]{10,}([.][0-9]+)?s)') && duration(self) >= duration('1s') && duration(self) <= duration('87600h'))",message="progressDeadline must be at least 1s and at most 87600h, which is ten years; leave it out to give clusters all the time that they need"
	ProgressDeadline *metav1.Duration `json:"progressDeadline,omitempty"`
	// beforeStageTasks hold the stage's first cluster back; at most one Approval.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.type != 'TimedWait')",message="BeforeStageTaskType cannot be TimedWait"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !(t.type == 'Approval' && has(t.waitTime)))",message="BeforeStageTaskType is Approval, waitTime is not allowed"
	BeforeStageTasks []StageTask `json:"beforeStageTasks,omitempty"`
	// afterStageTasks hold the next stage back once all clusters of this one are done; at most one of each type.
	// +optional
	// +kubebuilder:validation:MaxItems=2
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(t, !(t.type == 'Approval' && has(t.waitTime)))",message="AfterStageTaskType is Approval, waitTime is not allowed"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !(t.type == 'TimedWait' && !has(t.waitTime)))",message="AfterStageTaskType is TimedWait, waitTime is required"
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(u, u.type == t.type))",message="afterStageTasks cannot have two tasks of the same type"
	AfterStageTasks []StageTask `json:"afterStageTasks,omitempty"`
}

// StageTask is one gate.
type StageTask struct {
	// type is TimedWait or Approval.
	Type StageTaskType `json:"type"`
	// waitTime is how long a TimedWait lasts, in hours, minutes and seconds, such as 1h30m; more than zero, and at most 87600h.
	// Only for TimedWait, and required there.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?[hms])+$')",message="waitTime must be hours, minutes and seconds, each a number and its unit h, m or s, such as 1h30m, 90s or 1.5h; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?[hms])+$') || (!self.matches('(^|[hms])([0-9]{6,}([.][0-9]+)?h|[0-9]{8,}([.][0-9]+)?m|[0-9]{10,}([.][0-9]+)?s)') && duration(self) > duration('0s') && duration(self) <= duration('87600h'))",message="waitTime must be more than zero and at most 87600h, which is ten years; to wait for somebody's word, use a task of type Approval"
	WaitTime *metav1.Duration `json:"waitTime,omitempty"`
}

// ClusterStagedUpdateStrategy says in which stages update runs of ClusterResourcePlacements proceed.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=csus,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="First-Stage",type=string,JSONPath=`.spec.stages[0].name`
// +kubebuilder:printcolumn:name="Last-Stage",type=string,JSONPath=`.spec.stages[-1:].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterStagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the strategy. Runs that have started keep the one they started with.
	Spec UpdateStrategySpec `json:"spec"`
}

// ClusterStagedUpdateStrategyList is a list of ClusterStagedUpdateStrategy.
// +kubebuilder:object:root=true
type ClusterStagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStagedUpdateStrategy `json:"items"`
}

// UpdateRunState is what a run is to do.
// +kubebuilder:validation:Enum=Initialize;Run;Stop
type UpdateRunState string

const (
	// UpdateRunStateInitialize: plan, and start nothing.
	UpdateRunStateInitialize UpdateRunState = "Initialize"
	// UpdateRunStateRun: proceed.
	UpdateRunStateRun UpdateRunState = "Run"
	// UpdateRunStateStop: let the clusters in flight finish and start no other.
	UpdateRunStateStop UpdateRunState = "Stop"
)

// UpdateRunSpec asks for one journey of one resource snapshot through the clusters of a placement.
// +kubebuilder:validation:XValidation:rule="(has(self.resourceSnapshotIndex) && size(self.resourceSnapshotIndex) > 0) == (has(oldSelf.resourceSnapshotIndex) && size(oldSelf.resourceSnapshotIndex) > 0) && (!has(self.resourceSnapshotIndex) || !has(oldSelf.resourceSnapshotIndex) || self.resourceSnapshotIndex == oldSelf.resourceSnapshotIndex)",message="resourceSnapshotIndex is immutable"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.state == 'Initialize' && self.state == 'Stop')",message="invalid state transition: cannot transition from Initialize to Stop"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.state == 'Run' && self.state == 'Initialize')",message="invalid state transition: cannot transition from Run to Initialize"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.state == 'Stop' && self.state == 'Initialize')",message="invalid state transition: cannot transition from Stop to Initialize"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.clusterActions) || (has(self.clusterActions) && size(self.clusterActions) >= size(oldSelf.clusterActions) && oldSelf.clusterActions.all(i, a, self.clusterActions[i] == a))",message="clusterActions can only be added to at their end: what was asked for stays on record; to undo it, ask for the contrary in another entry"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.cancel) || (has(self.cancel) && self.cancel == oldSelf.cancel)",message="the run was cancelled, which cannot be taken back or changed; create a new run"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.cancel) || self.state == oldSelf.state",message="the run was cancelled and cannot be resumed; create a new run"
type UpdateRunSpec struct {
	// placementName is the placement to update; its strategy must be External. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="placementName is immutable"
	PlacementName string `json:"placementName"`
	// resourceSnapshotIndex is the snapshot to roll out, such as "1"; absent, what the selectors find when the run is
	// planned is snapshotted and rolled out. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^(0|[1-9][0-9]*)?$')",message="resourceSnapshotIndex must be an integer >= 0, such as \"1\"; leave it out to roll out what the selectors find now"
	ResourceSnapshotIndex string `json:"resourceSnapshotIndex,omitempty"`
	// stagedRolloutStrategyName is the strategy to follow. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="stagedRolloutStrategyName is immutable"
	StagedUpdateStrategyName string `json:"stagedRolloutStrategyName"`
	// state is Initialize (plan only), Run or Stop. Default: Initialize.
	// +optional
	// +kubebuilder:default=Initialize
	State UpdateRunState `json:"state,omitempty"`
	// clusterActions are what people asked of the run about single clusters, in order; at most 200. Entries can be added at
	// the end, and none can be changed or removed: status.clusterActions tells what became of each.
	// +optional
	// +kubebuilder:validation:MaxItems=200
	// +listType=atomic
	ClusterActions []ClusterAction `json:"clusterActions,omitempty"`
	// cancel ends the run for good: no further cluster is started, and each keeps what it has. It cannot be taken back; unlike
	// a stopped run, a cancelled one cannot be resumed.
	// +optional
	Cancel *RunCancellation `json:"cancel,omitempty"`
}

// UpdateRunStatus tells how far a run has come.
type UpdateRunStatus struct {
	// policySnapshotIndexUsed is the index of the policy snapshot whose clusters the run updates.
	// +optional
	PolicySnapshotIndexUsed string `json:"policySnapshotIndexUsed,omitempty"`
	// placementUID is the UID of the placement that the run was planned for. One that is made anew under its name is another.
	// +optional
	PlacementUID types.UID `json:"placementUID,omitempty"`
	// policyObservedClusterCount is the number of clusters to be updated.
	// +optional
	PolicyObservedClusterCount int32 `json:"policyObservedClusterCount,omitempty"`
	// resourceSnapshotIndexUsed is the index of the resource snapshot that the run rolls out.
	// +optional
	ResourceSnapshotIndexUsed string `json:"resourceSnapshotIndexUsed,omitempty"`
	// stagedUpdateStrategySnapshot is the strategy as it was when the run was planned.
	// +optional
	StagedUpdateStrategySnapshot *UpdateStrategySpec `json:"stagedUpdateStrategySnapshot,omitempty"`
	// appliedStrategy is the placement's apply strategy as it was when the run was initialised. The run gives it to each of its
	// clusters; later edits of the placement are for later runs.
	// +optional
	ApplyStrategy *ApplyStrategy `json:"appliedStrategy,omitempty"`
	// reportBackStrategy is the placement's, as it was then, and is given along with appliedStrategy.
	// +optional
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
	// stagesStatus has an entry for each stage, in order.
	// +optional
	// +listType=map
	// +listMapKey=stageName
	StagesStatus []StageUpdatingStatus `json:"stagesStatus,omitempty"`
	// deletionStageStatus is the last stage, which removes what is no longer scheduled.
	// +optional
	DeletionStageStatus *StageUpdatingStatus `json:"deletionStageStatus,omitempty"`
	// startedTime is when the run took the placement over: from then on its plan is fixed.
	// +optional
	StartedTime *metav1.Time `json:"startedTime,omitempty"`
	// clusterActions tells, for the entries of spec.clusterActions in their order, what became of them.
	// +optional
	// +listType=atomic
	ClusterActions []ClusterActionStatus `json:"clusterActions,omitempty"`
	// cancelled tells who cancelled the run, why and when.
	// +optional
	Cancelled *RunCancellationStatus `json:"cancelled,omitempty"`
	// conditions are Initialized, Progressing and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageUpdatingStatus tells how far one stage has come.
type StageUpdatingStatus struct {
	// stageName is the stage.
	StageName string `json:"stageName"`
	// clusters are the stage's clusters in the order in which they are updated.
	// +listType=atomic
	Clusters []ClusterUpdatingStatus `json:"clusters"`
	// clusterCounts counts the stage's clusters by how far they are.
	// +optional
	ClusterCounts *StageClusterCounts `json:"clusterCounts,omitempty"`
	// beforeStageTaskStatus is the gate before the stage.
	// +optional
	// +kubebuilder:validation:MaxItems=1
	// +listType=atomic
	BeforeStageTaskStatus []StageTaskStatus `json:"beforeStageTaskStatus,omitempty"`
	// afterStageTaskStatus are the gates after it.
	// +optional
	// +kubebuilder:validation:MaxItems=2
	// +listType=atomic
	AfterStageTaskStatus []StageTaskStatus `json:"afterStageTaskStatus,omitempty"`
	// startTime is when the run came to the stage, its gate included.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when the stage was done, its gates included.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// conditions are Progressing and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageClusterCounts counts the clusters of a stage.
type StageClusterCounts struct {
	// total is the number of clusters in the stage.
	Total int32 `json:"total"`
	// succeeded is how many are done.
	Succeeded int32 `json:"succeeded"`
	// updating is how many are in flight, failing ones included.
	Updating int32 `json:"updating"`
	// failing is how many of those cannot apply what they were given; they are tried again.
	Failing int32 `json:"failing"`
	// skipped is how many left the fleet or the placement before they were done, or were skipped by somebody.
	Skipped int32 `json:"skipped"`
	// failed is how many were not done at their progressDeadline.
	// +optional
	Failed int32 `json:"failed,omitempty"`
}

// ClusterUpdatingState is a cluster's progress in one word.
// +kubebuilder:validation:Enum=Started;Succeeded;Skipped;Failed
type ClusterUpdatingState string

const (
	// ClusterUpdatingStateStarted: in flight.
	ClusterUpdatingStateStarted ClusterUpdatingState = "Started"
	// ClusterUpdatingStateSucceeded: done.
	ClusterUpdatingStateSucceeded ClusterUpdatingState = "Succeeded"
	// ClusterUpdatingStateSkipped: left before it was done, or somebody skipped it.
	ClusterUpdatingStateSkipped ClusterUpdatingState = "Skipped"
	// ClusterUpdatingStateFailed: was not done at its progressDeadline, or when the run ended.
	ClusterUpdatingStateFailed ClusterUpdatingState = "Failed"
)

// ClusterUpdatingStatus tells how far one cluster has come.
type ClusterUpdatingStatus struct {
	// clusterName is the cluster.
	ClusterName string `json:"clusterName"`
	// AppliedOverrides are those of the cluster, as they were when the run was planned.
	AppliedOverrides `json:",inline"`
	// state stands for the conditions where those were left out to keep the run's status within its size.
	// +optional
	State ClusterUpdatingState `json:"state,omitempty"`
	// retries is how often somebody had the run start the cluster again.
	// +optional
	Retries int32 `json:"retries,omitempty"`
	// heldSince is since when the clock of the stage's progressDeadline stands still for this cluster; absent while it runs.
	// +optional
	HeldSince *metav1.Time `json:"heldSince,omitempty"`
	// heldSeconds is for how long it stood still before, since the cluster was started, in seconds.
	// +optional
	HeldSeconds int64 `json:"heldSeconds,omitempty"`
	// conditions are Started and Succeeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StageTaskStatus tells how far one gate is.
type StageTaskStatus struct {
	// type is TimedWait or Approval.
	Type StageTaskType `json:"type"`
	// approvalRequestName is the request to approve; only for Approval.
	// +optional
	ApprovalRequestName string `json:"approvalRequestName,omitempty"`
	// conditions are ApprovalRequestCreated and ApprovalRequestApproved, or WaitTimeElapsed.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterStagedUpdateRun rolls one resource snapshot of a ClusterResourcePlacement out, stage by stage.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName={csur,clusterstagedupdaterrun},categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.spec.placementName`
// +kubebuilder:printcolumn:name="Resource-Snapshot-Index",type=string,JSONPath=`.status.resourceSnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Policy-Snapshot-Index",type=string,JSONPath=`.status.policySnapshotIndexUsed`
// +kubebuilder:printcolumn:name="Initialized",type=string,JSONPath=`.status.conditions[?(@.type=="Initialized")].status`
// +kubebuilder:printcolumn:name="Progressing",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].status`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Strategy",type=string,priority=1,JSONPath=`.spec.stagedRolloutStrategyName`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Progressing")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name max length is 63; choose a shorter name"
type ClusterStagedUpdateRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to roll out, and whether to proceed.
	Spec UpdateRunSpec `json:"spec"`
	// status is how far it has come.
	// +optional
	Status UpdateRunStatus `json:"status,omitempty"`
}

// ClusterStagedUpdateRunList is a list of ClusterStagedUpdateRun.
// +kubebuilder:object:root=true
type ClusterStagedUpdateRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterStagedUpdateRun `json:"items"`
}

// ApprovalRequestSpec names the gate that an approval opens.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="The spec field is immutable"
type ApprovalRequestSpec struct {
	// parentStageRollout is the name of the update run that asks; at most 253 characters.
	// +kubebuilder:validation:MaxLength=253
	TargetUpdateRun string `json:"parentStageRollout"`
	// targetStage is the name of its stage that waits; at most 63 characters.
	// +kubebuilder:validation:MaxLength=63
	TargetStage string `json:"targetStage"`
}

// ApprovalRequestStatus tells whether it was approved.
type ApprovalRequestStatus struct {
	// conditions are Approved, which people set, and ApprovalAccepted, which the run sets. Approved must carry the request's
	// metadata.generation as its observedGeneration.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// approvedBy is who gave the approval that counts, and when. The API server fills it in from the request and its own
	// clock; what a client writes here is replaced.
	// +optional
	ApprovedBy *Approver `json:"approvedBy,omitempty"`
}

// Approver is who approved, and when.
type Approver struct {
	// user is the name that the API server authenticated.
	User string `json:"user"`
	// time is when the API server took the approval in, by its own clock: not the lastTransitionTime that the approval
	// carries, which the client chose.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// ClusterApprovalRequest asks a person to let a ClusterStagedUpdateRun pass a gate.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=careq,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Update-Run",type=string,JSONPath=`.spec.parentStageRollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="ApprovalAccepted",type=string,JSONPath=`.status.conditions[?(@.type=="ApprovalAccepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Approved-By",type=string,priority=1,JSONPath=`.status.approvedBy.user`
type ClusterApprovalRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the gate.
	Spec ApprovalRequestSpec `json:"spec"`
	// status is the answer.
	// +optional
	Status ApprovalRequestStatus `json:"status,omitempty"`
}

// ClusterApprovalRequestList is a list of ClusterApprovalRequest.
// +kubebuilder:object:root=true
type ClusterApprovalRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterApprovalRequest `json:"items"`
}
