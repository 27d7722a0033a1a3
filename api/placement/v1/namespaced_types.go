package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The kinds on this page are the cluster-scoped ones in a namespace: they place what is in that namespace, and all that
// belongs to a placement is in it too. The code that serves them is the same.

// ResourcePlacement places objects of its own namespace in the namespace of the same name in member clusters. That
// namespace has to be there: a ClusterResourcePlacement with selectionScope NamespaceOnly places it.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=rp,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.policy.placementType`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementScheduled")].status`
// +kubebuilder:printcolumn:name="Scheduled-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementScheduled")].observedGeneration`
// +kubebuilder:printcolumn:name="Work-Synchronized",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementWorkSynchronized")].status`
// +kubebuilder:printcolumn:name="Work-Synchronized-Gen",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementWorkSynchronized")].observedGeneration`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementAvailable")].status`
// +kubebuilder:printcolumn:name="Available-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementAvailable")].observedGeneration`
// +kubebuilder:printcolumn:name="Resource-Index",type=string,priority=1,JSONPath=`.status.observedResourceIndex`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) < 64",message="metadata.name: the name field cannot have length exceeding 63; choose a shorter name"
type ResourcePlacement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	Spec PlacementSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status PlacementStatus `json:"status,omitempty"`
}

// ResourcePlacementList is a list of ResourcePlacement.
// +kubebuilder:object:root=true
type ResourcePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourcePlacement `json:"items"`
}

// SchedulingPolicySnapshot is one revision of the policy of a ResourcePlacement, with the clusters chosen.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=sps,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Index",type=string,priority=1,JSONPath=`.metadata.labels.kubernetes-fleet\.io/policy-index`
// +kubebuilder:printcolumn:name="Latest",type=string,priority=1,JSONPath=`.metadata.labels.kubernetes-fleet\.io/is-latest-snapshot`
type SchedulingPolicySnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the policy.
	Spec SchedulingPolicySnapshotSpec `json:"spec"`
	// status is the scheduler's answer.
	// +optional
	Status SchedulingPolicySnapshotStatus `json:"status,omitempty"`
}

// SchedulingPolicySnapshotList is a list of SchedulingPolicySnapshot.
// +kubebuilder:object:root=true
type SchedulingPolicySnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SchedulingPolicySnapshot `json:"items"`
}

// ResourceSnapshot is one part of one immutable revision of what a ResourcePlacement selects.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=rs,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Index",type=string,priority=1,JSONPath=`.metadata.labels.kubernetes-fleet\.io/resource-index`
// +kubebuilder:printcolumn:name="Latest",type=string,priority=1,JSONPath=`.metadata.labels.kubernetes-fleet\.io/is-latest-snapshot`
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="spec is immutable; the hub makes a new snapshot when the resources change"
type ResourceSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the content.
	Spec ResourceSnapshotSpec `json:"spec"`
}

// ResourceSnapshotList is a list of ResourceSnapshot.
// +kubebuilder:object:root=true
type ResourceSnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceSnapshot `json:"items"`
}

// ResourceBinding ties a ResourcePlacement to one cluster.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=rb,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="WorkSynchronized",type=string,JSONPath=`.status.conditions[?(@.type=="WorkSynchronized")].status`
// +kubebuilder:printcolumn:name="ResourcesApplied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="ResourceAvailable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourceBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted on the cluster.
	Spec ResourceBindingSpec `json:"spec"`
	// status is what is there.
	// +optional
	Status ResourceBindingStatus `json:"status,omitempty"`
}

// ResourceBindingList is a list of ResourceBinding.
// +kubebuilder:object:root=true
type ResourceBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceBinding `json:"items"`
}

// StagedUpdateStrategy says in which stages update runs of ResourcePlacements proceed.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=sus,categories={fleet,fleet-placement}
// +kubebuilder:printcolumn:name="First-Stage",type=string,JSONPath=`.spec.stages[0].name`
// +kubebuilder:printcolumn:name="Last-Stage",type=string,JSONPath=`.spec.stages[-1:].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StagedUpdateStrategy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the strategy. Runs that have started keep the one they started with.
	Spec UpdateStrategySpec `json:"spec"`
}

// StagedUpdateStrategyList is a list of StagedUpdateStrategy.
// +kubebuilder:object:root=true
type StagedUpdateStrategyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StagedUpdateStrategy `json:"items"`
}

// StagedUpdateRun rolls one resource snapshot of a ResourcePlacement out, stage by stage.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName={sur,stagedupdaterrun},categories={fleet,fleet-placement}
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
type StagedUpdateRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to roll out, and whether to proceed.
	Spec UpdateRunSpec `json:"spec"`
	// status is how far it has come.
	// +optional
	Status UpdateRunStatus `json:"status,omitempty"`
}

// StagedUpdateRunList is a list of StagedUpdateRun.
// +kubebuilder:object:root=true
type StagedUpdateRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StagedUpdateRun `json:"items"`
}

// ApprovalRequest asks a person to let a StagedUpdateRun pass a gate.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=areq,categories={fleet,fleet-placement}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Staged-Update-Run",type=string,JSONPath=`.spec.parentStageRollout`
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.targetStage`
// +kubebuilder:printcolumn:name="Approved",type=string,JSONPath=`.status.conditions[?(@.type=="Approved")].status`
// +kubebuilder:printcolumn:name="ApprovalAccepted",type=string,JSONPath=`.status.conditions[?(@.type=="ApprovalAccepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Approved-By",type=string,priority=1,JSONPath=`.status.approvedBy.user`
type ApprovalRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the gate.
	Spec ApprovalRequestSpec `json:"spec"`
	// status is the answer.
	// +optional
	Status ApprovalRequestStatus `json:"status,omitempty"`
}

// ApprovalRequestList is a list of ApprovalRequest.
// +kubebuilder:object:root=true
type ApprovalRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ApprovalRequest `json:"items"`
}
