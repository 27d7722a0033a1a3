// Package release decides, from objects alone, how an agent treats a Deployment that a Kruise Rollout releases in batches of pods:
// whether its pod template may be written now, and whether it is in the middle of a release. It does no I/O.
package release

import (
	"fmt"
	"slices"

	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Deployments is the kind that is decided on.
var Deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}

// Situation is what a decision about one Deployment is made from.
type Situation struct {
	// Live is the Deployment as the member has it, and Wanted as it is to be applied.
	Live, Wanted *unstructured.Unstructured
	// Served tells that the member serves the kind Rollout.
	Served bool
	// Rollouts are those of the member that refer to the Deployment, whoever made them.
	Rollouts []*unstructured.Unstructured
	// Placed are the names of the Rollouts, of any Work of this member, that refer to the Deployment and are not disabled.
	Placed []string
	// Incomplete tells that not all Works that carry the Deployment's snapshot are there: one of them may bring a Rollout.
	Incomplete bool
}

// Decision is what is to be done with a new pod template. All else of the Deployment is applied in any case.
type Decision struct {
	// Withhold tells that the template stays as the member has it for now.
	Withhold bool
	// Missing tells that Kruise is not there to guard it, which does not pass by itself.
	Missing bool
	// Why says, for a person, what the template waits for.
	Why string
}

func wait(format string, args ...any) Decision {
	return Decision{Withhold: true, Why: fmt.Sprintf(format, args...)}
}

// Decide tells whether a new pod template may be written. Kruise takes it in hand only where its Rollout is at rest or in the middle
// of its batches, and has marked the Deployment for its webhook; written at any other moment, the template would replace all pods
// at once. A Deployment without pods has none that could be replaced, and Kruise makes no release of it.
func Decide(s Situation) Decision {
	active := slices.DeleteFunc(slices.Clone(s.Rollouts), kruise.Disabled)
	if runsNothing(s) {
		return Decision{}
	}
	for _, name := range s.Placed {
		at := slices.IndexFunc(s.Rollouts, func(r *unstructured.Unstructured) bool { return r.GetName() == name })
		switch {
		case !s.Served:
			d := wait("Rollout %s is to release it, and the member does not serve that kind: install Kruise Rollouts there, or set spec.disabled of the Rollout", name)
			d.Missing = true
			return d
		case at < 0:
			return wait("Rollout %s, which is to release it, is not in the member yet", name)
		case kruise.Disabled(s.Rollouts[at]):
			return wait("Rollout %s, which is to release it, is still disabled in the member", name)
		}
	}
	if len(active) == 0 && s.Incomplete && s.Served {
		return wait("not all Works of its snapshot are there: one of them may bring the Rollout that is to release it")
	}
	for _, rollout := range active {
		if d := guards(rollout, s.Live); d.Withhold {
			return d
		}
	}
	return Decision{}
}

// guards tells whether a Rollout would take a new template in hand.
func guards(rollout, live *unstructured.Unstructured) Decision {
	name, phase := rollout.GetName(), kruise.Phase(rollout)
	switch {
	case rollout.GetDeletionTimestamp() != nil || phase == "Terminating":
		return wait("Rollout %s is being deleted, and ends its release first", name)
	case phase == "" || !kruise.Observed(rollout):
		return wait("the controller of Rollout %s has not seen its generation %d; if that lasts, see whether Kruise Rollouts runs in the member", name, rollout.GetGeneration())
	case phase != "Healthy" && phase != kruise.PhaseProgressing:
		return wait("Rollout %s is in phase %s", name, phase)
	case live.GetLabels()[kruise.Guarded] == "":
		return wait("Rollout %s has not marked the Deployment with the label %s yet", name, kruise.Guarded)
	case phase == "Healthy":
		return Decision{}
	}
	switch reason := kruise.Progressing(rollout); reason {
	case "InRolling", "Paused":
		return Decision{}
	default:
		return wait("Rollout %s is in phase %s, %s", name, phase, reason)
	}
}

// runsNothing tells whether a Deployment has no pods that a new template could replace, or will have none.
func runsNothing(s Situation) bool {
	if replicasOf(s.Wanted, s.Live) == 0 {
		return true
	}
	pods, _, _ := unstructured.NestedInt64(s.Live.Object, "status", "replicas")
	return replicasOf(s.Live, nil) == 0 && pods == 0
}

// replicasOf is how many pods a Deployment is to run, by what it says or else by another; one that does not say runs one.
func replicasOf(o, otherwise *unstructured.Unstructured) int64 {
	n, said, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
	switch {
	case said && err == nil:
		return n
	case otherwise != nil:
		return replicasOf(otherwise, nil)
	default:
		return 1
	}
}

// Releasing tells whether Kruise is releasing a Deployment: by its own marks on it, or because one of the Rollouts that refer to it
// says so.
func Releasing(live *unstructured.Unstructured, rollouts []*unstructured.Unstructured) bool {
	return kruise.Holds(live.GetAnnotations()) || slices.ContainsFunc(rollouts, InRelease)
}

// InRelease tells whether a Rollout is in the middle of a release.
func InRelease(rollout *unstructured.Unstructured) bool {
	return kruise.Phase(rollout) == kruise.PhaseProgressing
}

// ReferTo returns those Rollouts, of one namespace, that release a Deployment of a name.
func ReferTo(name string, rollouts []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(rollouts), func(r *unstructured.Unstructured) bool {
		kind, workload := kruise.Workload(r)
		return kind != Deployments || workload != name
	})
}
