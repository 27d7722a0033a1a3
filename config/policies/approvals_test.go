package policies_test

import (
	"fmt"
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	firstApproval  = `{type: Approved, status: "True", reason: testPassed, message: lgtm, observedGeneration: 1, lastTransitionTime: "2026-01-02T03:04:05Z"}`
	secondApproval = `{type: Approved, status: "True", reason: testPassed, message: lgtm, observedGeneration: 1, lastTransitionTime: "2026-02-02T03:04:05Z"}`
	noApproval     = `{type: Approved, status: "False", reason: testFailed, message: wait, observedGeneration: 1, lastTransitionTime: "2026-01-03T03:04:05Z"}`
	acceptance     = `{type: ApprovalAccepted, status: "True", reason: ApprovalRequestApprovalAccepted, message: m, lastTransitionTime: "2026-01-04T03:04:05Z"}`
	noAcceptance   = `{type: ApprovalAccepted, status: "False", reason: r, message: m, lastTransitionTime: "2026-01-04T03:04:05Z"}`
	closed         = `{type: ApprovalAccepted, status: "False", reason: ApprovalRequestClosed, message: m, lastTransitionTime: "2026-01-04T03:04:05Z"}`
)

var (
	byAnna  = map[string]any{"user": "anna", "time": "2026-01-02T03:04:05Z"}
	byBoris = map[string]any{"user": "boris", "time": "2026-02-02T03:04:05Z"}
)

// write is a merge patch of a request's status by somebody.
type write struct {
	user, status string
	// refused is what the refusal says; empty where the write is accepted.
	refused string
}

// with is the merge patch that sets these conditions, as the first seed's command does.
func with(conditions ...string) string {
	return "status: {conditions: [" + strings.Join(conditions, ", ") + "]}"
}

func claiming(user string) string {
	return `, approvedBy: {user: ` + user + `, time: "2020-01-01T00:00:00Z"}}`
}

func TestApprover(t *testing.T) {
	install(t)
	for name, tc := range map[string]struct {
		writes     []write
		approvedBy map[string]any // nil: absent
		conditions []string       // type=status
	}{
		"nobody yet": {
			writes: []write{{user: "anna", status: with(noApproval)}}, conditions: []string{"Approved=False"},
		},
		"who approves is written down": {
			writes:     []write{{user: "anna", status: with(firstApproval)}},
			approvedBy: byAnna, conditions: []string{"Approved=True"},
		},
		"another name than one's own is replaced": {
			writes:     []write{{user: "anna", status: strings.TrimSuffix(with(firstApproval), "}") + claiming("boris")}},
			approvedBy: byAnna, conditions: []string{"Approved=True"},
		},
		"a name without an approval is dropped": {
			writes: []write{{user: "anna", status: strings.TrimSuffix(with(noApproval), "}") + claiming("anna")}}, conditions: []string{"Approved=False"},
		},
		"a name without any condition is dropped": {
			writes: []write{{user: "anna", status: `status: {approvedBy: {user: anna}}`}},
		},
		"approving what is approved changes nothing": {
			writes:     []write{{user: "anna", status: with(firstApproval)}, {user: "boris", status: with(secondApproval)}},
			approvedBy: byAnna, conditions: []string{"Approved=True"},
		},
		"a name cannot be changed later": {
			writes:     []write{{user: "anna", status: with(firstApproval)}, {user: "boris", status: "status: {approvedBy: {user: boris}}"}},
			approvedBy: byAnna, conditions: []string{"Approved=True"},
		},
		"a name cannot be erased": {
			writes:     []write{{user: "anna", status: with(firstApproval)}, {user: "boris", status: "status: {approvedBy: null}"}},
			approvedBy: byAnna, conditions: []string{"Approved=True"},
		},
		"a name cannot be erased with the status": {
			writes:     []write{{user: "anna", status: with(firstApproval)}, {user: "boris", status: "status: null"}},
			approvedBy: byAnna,
		},
		"an approval that nobody acted on can be taken back, and given by another": {
			writes: []write{
				{user: "anna", status: with(firstApproval)}, {user: "anna", status: with(noApproval)}, {user: "boris", status: with(secondApproval)},
			},
			approvedBy: byBoris, conditions: []string{"Approved=True"},
		},
		"the hub's acceptance keeps the name": {
			writes:     []write{{user: "anna", status: with(firstApproval)}, {user: "hub", status: with(firstApproval, acceptance)}},
			approvedBy: byAnna, conditions: []string{"Approved=True", "ApprovalAccepted=True"},
		},
		"approving again keeps the acceptance": {
			writes: []write{
				{user: "anna", status: with(firstApproval)}, {user: "hub", status: with(firstApproval, acceptance)}, {user: "boris", status: with(secondApproval)},
			},
			approvedBy: byAnna, conditions: []string{"Approved=True", "ApprovalAccepted=True"},
		},
		"approving a closed request does not open it": {
			writes:     []write{{user: "hub", status: with(closed)}, {user: "boris", status: with(secondApproval)}},
			approvedBy: byBoris, conditions: []string{"Approved=True", "ApprovalAccepted=False"},
		},
		"an accepted approval cannot be taken back": {
			writes: []write{
				{user: "anna", status: with(firstApproval, acceptance)},
				{user: "anna", status: with(noApproval), refused: "cannot be taken back; to halt the run, set its spec.state to Stop; to undo what it changed, create a run with an earlier resourceSnapshotIndex"},
			},
			approvedBy: byAnna, conditions: []string{"Approved=True", "ApprovalAccepted=True"},
		},
		"an accepted approval cannot be removed": {
			writes: []write{
				{user: "anna", status: with(firstApproval, acceptance)},
				{user: "anna", status: "status: {conditions: []}", refused: "update run first has already gone on because of this approval"},
				{user: "anna", status: "status: {conditions: null}", refused: "cannot be taken back"},
				{user: "anna", status: "status: null", refused: "cannot be taken back"},
				{user: "anna", status: with(acceptance), refused: "cannot be taken back"},
			},
			approvedBy: byAnna, conditions: []string{"Approved=True", "ApprovalAccepted=True"},
		},
		"an acceptance cannot be taken back": {
			writes: []write{
				{user: "anna", status: with(firstApproval, acceptance)},
				{user: "anna", status: with(firstApproval, noAcceptance), refused: "the condition ApprovalAccepted is the hub's and stays True"},
			},
			approvedBy: byAnna, conditions: []string{"Approved=True", "ApprovalAccepted=True"},
		},
	} {
		for _, version := range []string{"v1", "v1beta1"} {
			t.Run(name+", in "+version, func(t *testing.T) {
				got := play(t, version, tc.writes)
				approvedBy, _, _ := unstructured.NestedMap(got.Object, "status", "approvedBy")
				if diff := cmp.Diff(tc.approvedBy, approvedBy); diff != "" {
					t.Errorf("approvedBy (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.conditions, conditions(got)); diff != "" {
					t.Errorf("conditions (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// play creates an approval request, does the writes, and returns what there is in the end.
func play(t *testing.T, version string, writes []write) *unstructured.Unstructured {
	t.Helper()
	request := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parentStageRollout": "first", "targetStage": "canary"}}}
	request.SetAPIVersion(placementv1.GroupVersion.Group + "/" + version)
	request.SetKind("ClusterApprovalRequest")
	request.SetGenerateName("first-before-canary-")
	if err := framework.Client(t, hub).Create(t.Context(), request); err != nil {
		t.Fatalf("create an approval request: %v", err)
	}
	for i, w := range writes {
		patch, err := yaml.YAMLToJSON([]byte(w.status))
		if err != nil {
			t.Fatalf("parse write %d: %v\n%s", i, err, w.status)
		}
		err = as(t, w.user).Status().Patch(t.Context(), request.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		switch {
		case w.refused == "" && err != nil:
			t.Fatalf("write %d by %s is refused: %v", i, w.user, err)
		case w.refused != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), w.refused)):
			t.Fatalf("write %d by %s: %v, want it forbidden with %q", i, w.user, err, w.refused)
		}
	}
	if err := framework.Client(t, hub).Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
		t.Fatalf("read the approval request: %v", err)
	}
	return request
}

func conditions(request *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(request.Object, "status", "conditions")
	var got []string
	for _, c := range list {
		c, _ := c.(map[string]any)
		got = append(got, fmt.Sprintf("%v=%v", c["type"], c["status"]))
	}
	return got
}

// TestApproverOnCreate: an approval cannot be smuggled in with the request itself, nor by a write of the request without
// its status.
func TestApproverOnCreate(t *testing.T) {
	install(t)
	c := as(t, "anna")
	request := &placementv1.ClusterApprovalRequest{Spec: placementv1.ApprovalRequestSpec{TargetUpdateRun: "first", TargetStage: "canary"}}
	request.GenerateName = "smuggled-"
	forged := &placementv1.Approver{User: "boris"}
	request.Status.ApprovedBy = forged.DeepCopy()
	if err := c.Create(t.Context(), request); err != nil {
		t.Fatalf("create an approval request: %v", err)
	}
	request.Status.ApprovedBy = forged.DeepCopy()
	if err := c.Update(t.Context(), request); err != nil {
		t.Fatalf("update it: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
		t.Fatalf("read it: %v", err)
	}
	if request.Status.ApprovedBy != nil {
		t.Errorf("approvedBy is %v, want it absent", request.Status.ApprovedBy)
	}
}
