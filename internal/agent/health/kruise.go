package health

import (
	"fmt"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement/kruise"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// byRollout is of a workload that a Kruise Rollout updates: whether that waits for somebody, the Rollout tells.
func byRollout(updated, replicas int32) Verdict {
	v := notYet("a Kruise Rollout updates it, and %d of %d replicas are updated", updated, replicas)
	v.Reason = placementv1.ReasonManifestUpdatedByRollout
	return v
}

// JudgeReleased tells whether a workload is available of which Kruise Rollouts are in charge. While one of them is in the middle of a
// release the workload is not, however its pods are, nor has it failed: the release is what it waits for, and perhaps a person.
func JudgeReleased(object *unstructured.Unstructured, rollouts []*unstructured.Unstructured) Verdict {
	v := Judge(object)
	if object.GetDeletionTimestamp() != nil {
		return v
	}
	for _, r := range rollouts {
		if kruise.Phase(r) != kruise.PhaseProgressing {
			continue
		}
		switch of := progressing(r); {
		case of.Reason == placementv1.ReasonManifestPaused && missesPods(object):
			return notYet("Rollout %s releases it, and not all of its replicas are available", r.GetName())
		case of.Reason == placementv1.ReasonManifestPaused:
			return of
		case v.Reason == placementv1.ReasonManifestAvailabilityFailed:
			return notYet("Rollout %s releases it: %s", r.GetName(), v.Message)
		case v.Available:
			v = notYet("Rollout %s has not ended its release", r.GetName())
			v.Reason = placementv1.ReasonManifestUpdatedByRollout
		}
	}
	return v
}

// missesPods tells whether fewer pods of a workload are available than it is to have.
func missesPods(object *unstructured.Unstructured) bool {
	want, said, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	have, _, _ := unstructured.NestedInt64(object.Object, "status", "availableReplicas")
	return (said && have < want) || (!said && have < 1)
}

// rollout judges a Kruise Rollout: it is available where it has nothing to do.
func rollout(u *unstructured.Unstructured) (Verdict, error) {
	phase, _, err := unstructured.NestedString(u.Object, "status", "phase")
	if err != nil {
		return Verdict{}, fmt.Errorf("read its phase: %w", err)
	}
	if phase != "" && !kruise.Observed(u) {
		v := notYet("its controller has not seen generation %d", u.GetGeneration())
		if phase == kruise.PhaseProgressing {
			v.Reason = placementv1.ReasonManifestUpdatedByRollout
		}
		return v, nil
	}
	switch phase {
	case "", "Initial": // placed ahead of what it is for, as is wise, it has nothing to tell of
		v := notTrackable()
		v.Message += ": the Rollout has not found its workload yet"
		return v, nil
	case "Healthy", "Disabled":
		return available(), nil
	case kruise.PhaseProgressing:
		return progressing(u), nil
	default:
		return notYet("its phase is %s", phase), nil
	}
}

// progressing judges a Rollout that is in the middle of a release.
func progressing(u *unstructured.Unstructured) Verdict {
	if kruise.Paused(u) {
		return paused("it is paused, until somebody sets its spec.strategy.paused to false")
	}
	if a, waits := kruise.Approval(u); waits {
		return paused("%s", a)
	}
	message, _, _ := unstructured.NestedString(u.Object, "status", "message")
	v := notYet("the Rollout is on its way: %s", message)
	v.Reason = placementv1.ReasonManifestUpdatedByRollout
	return v
}
