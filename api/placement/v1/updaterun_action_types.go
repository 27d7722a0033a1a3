package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterActionType is what a person can ask of a run about one of its clusters.
// +kubebuilder:validation:Enum=Skip;Retry
type ClusterActionType string

const (
	// ClusterActionSkip: go on without the cluster. One that was started keeps what it was given.
	ClusterActionSkip ClusterActionType = "Skip"
	// ClusterActionRetry: start a cluster again that has failed or was skipped, on the run's own resource snapshot.
	ClusterActionRetry ClusterActionType = "Retry"
)

// ClusterAction is what a person asks of a run about one of its clusters.
type ClusterAction struct {
	// cluster is the name of one of the run's clusters; 1 to 63 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// action is Skip (go on without the cluster; one that was started keeps what it was given) or Retry (start one again that
	// has failed or was skipped).
	Action ClusterActionType `json:"action"`
	// reason says why, for people; at most 200 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Reason string `json:"reason,omitempty"`
	// requestedBy is who asked. The API server fills it in from the request; what a client writes here is replaced.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	RequestedBy string `json:"requestedBy,omitempty"`
}

// RunCancellation asks a run to end for good.
type RunCancellation struct {
	// reason says why, for people; at most 200 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=200
	Reason string `json:"reason,omitempty"`
	// requestedBy is who asked. The API server fills it in from the request; what a client writes here is replaced.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	RequestedBy string `json:"requestedBy,omitempty"`
}

// ClusterActionResult is what became of an action.
// +kubebuilder:validation:Enum=Accepted;Refused
type ClusterActionResult string

const (
	// ClusterActionAccepted: the run does as it was asked.
	ClusterActionAccepted ClusterActionResult = "Accepted"
	// ClusterActionRefused: it cannot; the message says why.
	ClusterActionRefused ClusterActionResult = "Refused"
)

// ClusterActionStatus tells what became of one entry of spec.clusterActions.
type ClusterActionStatus struct {
	// cluster is the cluster of the entry.
	Cluster string `json:"cluster"`
	// action is what was asked.
	Action ClusterActionType `json:"action"`
	// requestedBy is who asked.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// reason is why, in that person's words.
	// +optional
	Reason string `json:"reason,omitempty"`
	// time is when the run took note.
	Time metav1.Time `json:"time"`
	// result is Accepted or Refused.
	Result ClusterActionResult `json:"result"`
	// message says, where it was refused, why.
	// +optional
	Message string `json:"message,omitempty"`
}

// RunCancellationStatus tells who cancelled a run, why and when.
type RunCancellationStatus struct {
	// requestedBy is who asked.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// reason is why, in that person's words.
	// +optional
	Reason string `json:"reason,omitempty"`
	// time is when the run took note.
	Time metav1.Time `json:"time"`
}
