package release

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return o
}

const (
	marked   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: {rollouts.kruise.io/workload-type: deployment}}, spec: {replicas: 4}, status: {replicas: 4}}`
	unmarked = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 4}, status: {replicas: 4}}`
	wanted   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 4}}`
)

func rollout(phase, reason, more string) string {
	return `{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: r, generation: 2` + more + `}, spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}},
		status: {observedGeneration: 2, phase: "` + phase + `", conditions: [{type: Progressing, reason: "` + reason + `"}]}}`
}

// In each state of a Rollout either the template is written, and Kruise takes it in hand, or it is withheld.
func TestDecide(t *testing.T) {
	t.Parallel()
	const disabled = `{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, metadata: {name: r, generation: 2}, spec: {disabled: true, workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}}, status: {observedGeneration: 2, phase: Disabled}}`
	behind := strings.Replace(rollout("Healthy", "", ""), "observedGeneration: 2", "observedGeneration: 1", 1)
	for name, tc := range map[string]struct {
		live, wanted string
		rollouts     []string
		placed       []string
		unserved     bool
		incomplete   bool
		why          string // empty: written
		missing      bool
	}{
		"no Rollout":                                   {live: unmarked},
		"no Rollout, and no such kind":                 {live: unmarked, unserved: true},
		"at rest":                                      {live: marked, rollouts: []string{rollout("Healthy", "", "")}},
		"at rest after a release":                      {live: marked, rollouts: []string{rollout("Healthy", "Completed", "")}, placed: []string{"r"}},
		"at rest, the Deployment not marked":           {live: unmarked, rollouts: []string{rollout("Healthy", "", "")}, why: "label rollouts.kruise.io/workload-type"},
		"in its batches":                               {live: marked, rollouts: []string{rollout("Progressing", "InRolling", "")}},
		"paused by somebody":                           {live: marked, rollouts: []string{rollout("Progressing", "Paused", "")}},
		"beginning":                                    {live: marked, rollouts: []string{rollout("Progressing", "Initializing", "")}, why: "Progressing, Initializing"},
		"ending":                                       {live: marked, rollouts: []string{rollout("Progressing", "Finalising", "")}, why: "Progressing, Finalising"},
		"being cancelled":                              {live: marked, rollouts: []string{rollout("Progressing", "Cancelling", "")}, why: "Progressing, Cancelling"},
		"ended, and not yet at rest":                   {live: marked, rollouts: []string{rollout("Progressing", "Completed", "")}, why: "Progressing, Completed"},
		"progressing, and it does not say how":         {live: marked, rollouts: []string{rollout("Progressing", "", "")}, why: "Progressing"},
		"has not found the Deployment":                 {live: marked, rollouts: []string{rollout("Initial", "", "")}, why: "phase Initial"},
		"being enabled":                                {live: marked, rollouts: []string{rollout("Disabled", "", "")}, why: "phase Disabled"},
		"terminating":                                  {live: marked, rollouts: []string{rollout("Terminating", "", "")}, why: "being deleted"},
		"being deleted":                                {live: marked, rollouts: []string{rollout("Healthy", "", `, deletionTimestamp: "2026-01-01T00:00:00Z"`)}, why: "being deleted"},
		"nobody has looked at it":                      {live: marked, rollouts: []string{rollout("", "", "")}, why: "see whether Kruise Rollouts runs"},
		"its controller is behind":                     {live: marked, rollouts: []string{behind}, why: "has not seen its generation 2"},
		"disabled":                                     {live: unmarked, rollouts: []string{disabled}},
		"disabled, with Works still to come":           {live: unmarked, rollouts: []string{disabled}, incomplete: true, why: "not all Works"},
		"disabled in the member, and placed enabled":   {live: unmarked, rollouts: []string{disabled}, placed: []string{"r"}, why: "still disabled"},
		"placed, and not there yet":                    {live: unmarked, placed: []string{"r"}, why: "not in the member yet"},
		"placed, and Kruise is not there":              {live: unmarked, placed: []string{"r"}, unserved: true, why: "install Kruise Rollouts", missing: true},
		"one of two at rest":                           {live: marked, rollouts: []string{rollout("Healthy", "", ""), strings.Replace(rollout("Initial", "", ""), "name: r,", "name: s,", 1)}, why: "Rollout s"},
		"Works of the snapshot are still to come":      {live: unmarked, incomplete: true, why: "not all Works"},
		"Works still to come, without Kruise":          {live: unmarked, incomplete: true, unserved: true},
		"no replicas":                                  {live: strings.ReplaceAll(unmarked, "replicas: 4", "replicas: 0"), wanted: strings.Replace(wanted, "replicas: 4", "replicas: 0", 1), rollouts: []string{rollout("Initial", "", "")}, placed: []string{"r"}},
		"no replicas, and Kruise is not there":         {live: strings.ReplaceAll(unmarked, "replicas: 4", "replicas: 0"), placed: []string{"r"}, unserved: true},
		"none any more":                                {live: unmarked, wanted: strings.Replace(wanted, "replicas: 4", "replicas: 0", 1), rollouts: []string{rollout("Initial", "", "")}},
		"none were wanted, and pods are still there":   {live: strings.Replace(unmarked, "spec: {replicas: 4", "spec: {replicas: 0", 1), rollouts: []string{rollout("Initial", "", "")}, why: "phase Initial"},
		"replicas are not said":                        {live: strings.Replace(unmarked, "spec: {replicas: 4}", "spec: {}", 1), wanted: strings.Replace(wanted, "spec: {replicas: 4}", "spec: {}", 1), rollouts: []string{rollout("Initial", "", "")}, why: "phase Initial"},
		"replicas are the member's own, which is none": {live: strings.ReplaceAll(unmarked, "replicas: 4", "replicas: 0"), wanted: strings.Replace(wanted, "spec: {replicas: 4}", "spec: {}", 1), rollouts: []string{rollout("Initial", "", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Situation{Live: read(t, tc.live), Wanted: read(t, wanted), Served: !tc.unserved, Placed: tc.placed, Incomplete: tc.incomplete}
			if tc.wanted != "" {
				s.Wanted = read(t, tc.wanted)
			}
			for _, r := range tc.rollouts {
				s.Rollouts = append(s.Rollouts, read(t, r))
			}
			got := Decide(s)
			if got.Withhold != (tc.why != "") || !strings.Contains(got.Why, tc.why) || got.Missing != tc.missing {
				t.Errorf("got %+v, want %q, missing %t", got, tc.why, tc.missing)
			}
		})
	}
}

func TestReleasing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		annotations, rollout string
		want                 bool
	}{
		"neither":                         {``, rollout("Healthy", "", ""), false},
		"marked by the webhook":           {`rollouts.kruise.io/in-progressing: x`, rollout("Healthy", "", ""), true},
		"in the hands of a BatchRelease":  {`batchrelease.rollouts.kruise.io/control-info: x`, rollout("Healthy", "", ""), true},
		"its Rollout says so":             {``, rollout("Progressing", "Finalising", ""), true},
		"marked, and there is no Rollout": {`rollouts.kruise.io/in-progressing: x`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rollouts []*unstructured.Unstructured
			if tc.rollout != "" {
				rollouts = append(rollouts, read(t, tc.rollout))
			}
			if got := Releasing(read(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {annotations: {`+tc.annotations+`}}}`), rollouts); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestReferTo(t *testing.T) {
	t.Parallel()
	var all []*unstructured.Unstructured
	for _, ref := range []string{
		`{apiVersion: apps/v1, kind: Deployment, name: web}`, `{apiVersion: apps/v1, kind: Deployment, name: shop}`, `{apiVersion: apps/v1, kind: StatefulSet, name: web}`,
		`{apiVersion: v1, kind: Deployment, name: web}`, `{apiVersion: apps.kruise.io/v1alpha1, kind: Deployment, name: web}`, `{apiVersion: apps/v1beta1, kind: Deployment, name: web}`, `{}`,
	} {
		all = append(all, read(t, `{apiVersion: rollouts.kruise.io/v1beta1, kind: Rollout, spec: {workloadRef: `+ref+`}}`))
	}
	if got := ReferTo("web", all); len(got) != 2 || got[0] != all[0] || got[1] != all[5] {
		t.Errorf("got %v", got)
	}
}
