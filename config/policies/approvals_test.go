package policies_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
	staleApproval  = `{type: Approved, status: "True", reason: testPassed, message: lgtm, observedGeneration: 2, lastTransitionTime: "2026-01-02T03:04:05Z"}`
	bareApproval   = `{type: Approved, status: "True", reason: testPassed, message: lgtm, lastTransitionTime: "2026-01-02T03:04:05Z"}`
	noApproval     = `{type: Approved, status: "False", reason: testFailed, message: wait, observedGeneration: 1, lastTransitionTime: "2026-01-03T03:04:05Z"}`
	acceptance     = `{type: ApprovalAccepted, status: "True", reason: ApprovalRequestApprovalAccepted, message: m, lastTransitionTime: "2026-01-04T03:04:05Z"}`
	noAcceptance   = `{type: ApprovalAccepted, status: "False", reason: r, message: m, lastTransitionTime: "2026-01-04T03:04:05Z"}`
	closed         = `{type: ApprovalAccepted, status: "False", reason: ApprovalRequestClosed, message: m, lastTransitionTime: "2026-01-04T03:04:05Z"}`
)

// What approvedBy says. The time is the API server's, and looked at apart.
const (
	byAnna  = "anna"
	byBoris = "boris"
)

// write is a merge patch of a request's status by somebody.
type write struct {
	user, status string
	// main tells that it is a write of the request itself.
	main bool
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
		approvedBy string   // empty: absent
		conditions []string // type=status
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
		"an approval of another generation is refused, and its giver forgotten": {
			writes: []write{
				{user: "anna", status: with(staleApproval), refused: "status.conditions: the condition Approved must have observedGeneration 1, which is the request's metadata.generation, but has 2; read the request again, and approve it with observedGeneration: 1"},
				{user: "anna", status: with(bareApproval), refused: "must have observedGeneration 1, which is the request's metadata.generation, but has none"},
				{user: "boris", status: with(secondApproval)},
			},
			approvedBy: byBoris, conditions: []string{"Approved=True"},
		},
		"an approval is not made one of another generation": {
			writes: []write{
				{user: "anna", status: with(firstApproval)}, {user: "boris", status: with(staleApproval), refused: "must have observedGeneration 1"},
			},
			approvedBy: byAnna, conditions: []string{"Approved=True"},
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
				{user: "anna", status: "status: {conditions: []}", refused: "update run first has accepted this approval, so it cannot be taken back"},
				{user: "anna", status: "status: {conditions: null}", refused: "cannot be taken back"},
				{user: "anna", status: "status: null", refused: "cannot be taken back"},
				{user: "anna", status: with(acceptance), refused: "cannot be taken back"},
			},
			approvedBy: byAnna, conditions: []string{"Approved=True", "ApprovalAccepted=True"},
		},
		"an acceptance alone opens nothing": {
			writes: []write{
				{user: "anna", status: with(acceptance), refused: "the condition ApprovalAccepted is the hub's, and cannot be True before somebody has approved; to approve, set the condition Approved: kubectl amc run approve first --stage canary"},
				{user: "anna", status: with(noApproval, acceptance), refused: "ApprovalAccepted is the hub's"},
				{user: "anna", status: with(bareApproval, acceptance), refused: "must have observedGeneration 1"},
				{user: "anna", status: with(noApproval)},
				{user: "anna", status: with(acceptance), refused: "ApprovalAccepted is the hub's"},
				{user: "hub", status: with(closed)},
				{user: "anna", status: with(acceptance), refused: "ApprovalAccepted is the hub's"},
			},
			conditions: []string{"ApprovalAccepted=False"},
		},
		"an acceptance together with an approval records who gave it": {
			writes:     []write{{user: "anna", status: with(firstApproval, acceptance)}},
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
				started := time.Now()
				got := play(t, version, tc.writes)
				if user := approvedBy(t, got, started); user != tc.approvedBy {
					t.Errorf("approved by %q, want %q", user, tc.approvedBy)
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
		if c := as(t, w.user); w.main {
			err = c.Patch(t.Context(), request.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		} else {
			err = c.Status().Patch(t.Context(), request.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		}
		switch {
		case w.refused == "" && err != nil:
			t.Fatalf("write %d by %s is refused: %v", i, w.user, err)
		case w.refused != "" && (!isRefusal(err) || !strings.Contains(err.Error(), w.refused)):
			t.Fatalf("write %d by %s: %v, want it refused with %q", i, w.user, err, w.refused)
		}
	}
	if err := framework.Client(t, hub).Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
		t.Fatalf("read the approval request: %v", err)
	}
	return request
}

func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// approvedBy returns who approved a request; empty for nobody. The time of it must be the server's, not before the test.
func approvedBy(t *testing.T, request *unstructured.Unstructured, since time.Time) string {
	t.Helper()
	who, found, _ := unstructured.NestedStringMap(request.Object, "status", "approvedBy")
	if !found {
		return ""
	}
	at, err := time.Parse(time.RFC3339, who["time"])
	if err != nil {
		t.Errorf("approvedBy.time: %v", err)
	}
	if at.Before(since.Truncate(time.Second)) || at.After(time.Now()) {
		t.Errorf("approvedBy.time is %s, want it between %s and %s", at, since.UTC(), time.Now().UTC())
	}
	return who["user"]
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

// TestApprovalTimeCannotBeForged: managedFields that a client hands in do not move the time of its approval.
func TestApprovalTimeCannotBeForged(t *testing.T) {
	install(t)
	const longAgo, farOff = "2020-01-01T00:00:00Z", "2040-01-01T00:00:00Z"
	owns := func(manager, apiVersion, operation, at string) string {
		return fmt.Sprintf(`{manager: %s, operation: %s, apiVersion: placement.kubernetes-fleet.io/%s, time: %q, fieldsType: FieldsV1, subresource: status,
  fieldsV1: {"f:status": {"f:conditions": {".": {}, 'k:{"type":"Approved"}': {".": {}, "f:type": {}, "f:status": {}, "f:observedGeneration": {}}}}}}`,
			manager, operation, apiVersion, at)
	}
	crowd := make([]string, 10) // as many as the API server keeps: the approval's own is one too many
	for i := range crowd {
		crowd[i] = fmt.Sprintf(`{manager: crowd-%d, operation: Update, apiVersion: placement.kubernetes-fleet.io/v1, time: %q, fieldsType: FieldsV1,
  fieldsV1: {"f:spec": {"f:targetStage": {}}}}`, i, farOff)
	}
	fields := func(entries ...string) string {
		return "metadata: {managedFields: [" + strings.Join(entries, ", ") + "]}\n"
	}
	for name, tc := range map[string]struct {
		before  []string // the entries that are put in before the approval
		with    []string // those that the approval itself hands in
		refused bool
	}{
		"in the past":                   {before: []string{owns("other", "v1", "Update", longAgo)}},
		"in the future":                 {before: []string{owns("other", "v1", "Update", farOff)}},
		"by the same program":           {before: []string{owns("policies.test", "v1", "Update", farOff)}},
		"by it in the other version":    {before: []string{owns("policies.test", "v1beta1", "Update", farOff)}},
		"as applied":                    {before: []string{owns("other", "v1", "Apply", farOff)}},
		"of a version that is not":      {before: []string{owns("other", "v9", "Update", farOff)}},
		"with all entries removed":      {before: []string{"{}"}, refused: true},
		"by the approval":               {with: []string{owns("other", "v1", "Update", farOff)}},
		"by the approval, several":      {with: crowd},
		"by a crowd that hides a write": {before: crowd, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			var writes []write
			if tc.before != nil {
				writes = append(writes, write{user: "anna", status: with(noApproval)}, write{user: "anna", main: true, status: fields(tc.before...)})
			}
			approval := write{user: "anna", status: with(firstApproval)}
			if tc.with != nil {
				approval.status = fields(tc.with...) + approval.status
			}
			want := []string{byAnna, "Approved=True"}
			if tc.refused {
				approval.refused = "metadata.managedFields does not tell when this approval was given, since somebody changed it; delete the request, and approve the one that its run then makes anew"
				want = []string{"", "Approved=False"}
			}
			started := time.Now()
			got := play(t, "v1", append(writes, approval))
			if diff := cmp.Diff(want, append([]string{approvedBy(t, got, started)}, conditions(got)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestApprovalThatDoesNotCountGivesWay: an approval of another generation that was stored before the policies were there
// keeps nobody from writing the rest of the status, and who approves later is the one whose approval counts.
func TestApprovalThatDoesNotCountGivesWay(t *testing.T) {
	config := framework.StartAPIServer(t)
	c := framework.Client(t, config)
	request := &placementv1.ClusterApprovalRequest{Spec: placementv1.ApprovalRequestSpec{TargetUpdateRun: "first", TargetStage: "canary"}}
	request.Name = "first-before-canary"
	if err := c.Create(t.Context(), request); err != nil {
		t.Fatalf("create an approval request: %v", err)
	}
	approve := func(status string) {
		t.Helper()
		patch, err := yaml.YAMLToJSON([]byte(status))
		if err != nil {
			t.Fatalf("parse an approval: %v", err)
		}
		if err := c.Status().Patch(t.Context(), request, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatalf("write the status: %v", err)
		}
	}
	approve(with(staleApproval))
	framework.InstallPolicies(t, config)
	approve(with(staleApproval, noAcceptance))
	if request.Status.ApprovedBy != nil {
		t.Errorf("an approval that does not count is recorded as given by %v", request.Status.ApprovedBy)
	}
	started := time.Now().Truncate(time.Second)
	approve(with(firstApproval))
	if by := request.Status.ApprovedBy; by == nil || by.User == "" || by.Time == nil || by.Time.Time.Before(started) {
		t.Errorf("an approval that counts is recorded as %v, want its giver and a time not before %s", by, started)
	}
}
