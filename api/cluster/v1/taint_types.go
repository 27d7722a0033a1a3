package v1

// TaintEffect is what a taint does to placements that do not tolerate it.
// +kubebuilder:validation:Enum=NoSchedule
type TaintEffect string

// TaintNoSchedule keeps placements that do not tolerate the taint from choosing the cluster. What is placed there already
// stays.
const TaintNoSchedule TaintEffect = "NoSchedule"

// Taint keeps placements off a cluster, apart from those that tolerate it.
type Taint struct {
	// key names the taint; written like the key of a label.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a taint's key must be written like the key of a label, such as maintenance or example.com/maintenance"
	Key string `json:"key"`
	// value belongs to the key; written like the value of a label. Default: empty.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="a taint's value must be written like the value of a label: letters, digits, dashes, underscores and dots, with a letter or digit at each end"
	Value string `json:"value,omitempty"`
	// effect is NoSchedule, the only one there is: no placement that does not tolerate the taint chooses the cluster anew.
	Effect TaintEffect `json:"effect"`
}
