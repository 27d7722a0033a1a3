package kruise

import (
	"fmt"
	"regexp"
	"strconv"
)

// AwaitedApproval is a step of a Rollout that waits until a person approves it.
type AwaitedApproval struct {
	// Step is the step that is done, counted from 1, and Steps how many there are.
	Step, Steps int
	// Namespace and Name are the Rollout's.
	Namespace, Name string
}

// String says in a member's own words what is waited for. ReadApproval reads it back.
func (a AwaitedApproval) String() string {
	return fmt.Sprintf("waiting for approval of step %d/%d of Rollout %s/%s (%s)", a.Step, a.Steps, a.Namespace, a.Name, a.Command())
}

// In says for the hub what is waited for, in the middle of a sentence that says that something is.
func (a AwaitedApproval) In(cluster string) string {
	return fmt.Sprintf("approval of step %d/%d in %s (Rollout %s/%s; there: %s)", a.Step, a.Steps, cluster, a.Namespace, a.Name, a.Command())
}

// Command is what a person types in the member to approve the step.
func (a AwaitedApproval) Command() string {
	return fmt.Sprintf("kubectl kruise rollout approve rollout/%s -n %s", a.Name, a.Namespace)
}

var approval = regexp.MustCompile(`waiting for approval of step ([0-9]{1,4})/([0-9]{1,4}) of Rollout ([a-z0-9-]{1,63})/([a-z0-9.-]{1,253}) \(`)

// ReadApproval finds in an agent's message for what it waits; ok is false where it does not say.
func ReadApproval(message string) (a AwaitedApproval, ok bool) {
	found := approval.FindStringSubmatch(message)
	if found == nil {
		return AwaitedApproval{}, false
	}
	step, err := strconv.Atoi(found[1])
	steps, also := strconv.Atoi(found[2])
	if err != nil || also != nil {
		return AwaitedApproval{}, false
	}
	return AwaitedApproval{Step: step, Steps: steps, Namespace: found[3], Name: found[4]}, true
}
