package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// GroupVersion identifies this API.
var GroupVersion = schema.GroupVersion{Group: "rollouts.kruise.io", Version: "v1beta1"}

// RolloutKind is the kind.
var RolloutKind = GroupVersion.WithKind("Rollout")

// AddToScheme registers every kind of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Rollout{}, &RolloutList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// WorkloadRef names the workload whose changes are released in batches, in the Rollout's namespace.
type WorkloadRef struct {
	// apiVersion is its API group and version, such as apps/v1.
	// +kubebuilder:validation:MinLength=1
	APIVersion string `json:"apiVersion"`
	// kind is its kind, such as Deployment.
	// +kubebuilder:validation:MinLength=1
	Kind string `json:"kind"`
	// name is its name.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// Pause is a wait after a batch.
type Pause struct {
	// duration is how many seconds it lasts; without one, a person has to approve.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Duration *int32 `json:"duration,omitempty"`
}

// Step is a batch.
// +kubebuilder:pruning:PreserveUnknownFields
type Step struct {
	// replicas is how many pods are new after it, as a number or a percentage such as 50%.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) != string || self.matches('^(100|[0-9]{1,2})%$')",message="replicas must be a number, or a percentage from 0% to 100%, such as 50%"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self >= 0",message="replicas must be 0 or more"
	// +kubebuilder:validation:XValidation:rule="type(self) != int || self <= 100000000",message="replicas must be at most 100000000"
	Replicas *intstr.IntOrString `json:"replicas"`
	// pause is the wait after it.
	// +optional
	Pause *Pause `json:"pause,omitempty"`
}

// Steps are the batches of a strategy.
// +kubebuilder:pruning:PreserveUnknownFields
type Steps struct {
	// steps are the batches, in order; 50 at the most.
	// +optional
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	Steps []Step `json:"steps,omitempty"`
}

// Strategy says how a change is released.
// +kubebuilder:pruning:PreserveUnknownFields
// +kubebuilder:validation:XValidation:rule="has(self.canary) != has(self.blueGreen)",message="give either canary or blueGreen: a change is released in one way"
type Strategy struct {
	// paused stops a release where it is.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// canary replaces pods batch by batch.
	// +optional
	Canary *Steps `json:"canary,omitempty"`
	// blueGreen brings up new pods beside the old ones.
	// +optional
	BlueGreen *Steps `json:"blueGreen,omitempty"`
}

// RolloutSpec says which workload is released, and how.
type RolloutSpec struct {
	// workloadRef names the workload.
	WorkloadRef WorkloadRef `json:"workloadRef"`
	// disabled has changes released as if there were no Rollout.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// strategy says how.
	Strategy Strategy `json:"strategy"`
}

// Phases of a Rollout.
const (
	// PhaseInitial: the workload does not exist, or Kruise has not looked at it yet.
	PhaseInitial = "Initial"
	// PhaseHealthy: nothing is being released; the next change of the workload begins a release.
	PhaseHealthy = "Healthy"
	// PhaseProgressing: a change is being released; the condition Progressing says how far that is.
	PhaseProgressing = "Progressing"
	// PhaseTerminating: the Rollout is being deleted, and what it had in hand is brought to an end.
	PhaseTerminating = "Terminating"
	// PhaseDisabled: spec.disabled stands, and changes are released as if there were no Rollout.
	PhaseDisabled = "Disabled"
	// PhaseDisabling: spec.disabled was set in the middle of a release, which is brought to an end.
	PhaseDisabling = "Disabling"
)

// RolloutStatus is, in a member, how the release goes; on the hub it sums up what members say.
// +kubebuilder:pruning:PreserveUnknownFields
type RolloutStatus struct {
	// observedGeneration is the generation that Kruise has looked at.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is Initial, Healthy, Progressing, Terminating, Disabling or Disabled.
	// +optional
	Phase string `json:"phase,omitempty"`
	// message says what is waited for.
	// +optional
	Message string `json:"message,omitempty"`
	// currentStepIndex is the batch, counted from 1.
	// +optional
	CurrentStepIndex int32 `json:"currentStepIndex,omitempty"`
	// currentStepState is how far it has come.
	// +optional
	CurrentStepState string `json:"currentStepState,omitempty"`
	// conditions are Kruise's.
	// +optional
	// +listType=atomic
	Conditions []RolloutCondition `json:"conditions,omitempty"`
}

// RolloutCondition is one of Kruise's conditions.
// +kubebuilder:pruning:PreserveUnknownFields
type RolloutCondition struct {
	// type is Progressing, Succeeded or Terminating.
	Type string `json:"type"`
	// status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// reason is, of Progressing, Initializing, InRolling, Paused, Finalising, Cancelling or Completed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says more.
	// +optional
	Message string `json:"message,omitempty"`
}

// Rollout has changes of a workload released in batches. On the hub it is a template, like the workload.
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Canary_Step",type=integer,JSONPath=`.status.currentStepIndex`
// +kubebuilder:printcolumn:name="Canary_State",type=string,JSONPath=`.status.currentStepState`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says which workload is released, and how.
	Spec RolloutSpec `json:"spec"`
	// status is how it goes.
	// +optional
	Status RolloutStatus `json:"status,omitempty"`
}

// RolloutList is a list of Rollout.
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}
