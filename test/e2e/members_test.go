package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/quickstart"
	"github.com/fleetwright/fleetwright/test/framework"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stop kills processes of the shared fleet, and starts them again when the test ends, or when it says so.
func stop(t *testing.T, processes ...string) (start func()) {
	t.Helper()
	down := false
	begin := func(ctx context.Context) {
		if !down {
			return
		}
		down = false
		for _, process := range processes {
			if err := fleet.Sandbox(ctx, "start", process); err != nil {
				t.Errorf("start %s: %v", process, err)
			}
		}
	}
	t.Cleanup(func() { begin(framework.CleanupContext(t)) })
	for _, process := range slices.Backward(processes) {
		sandbox(t, "kill", process)
		down = true
	}
	return func() { begin(t.Context()) }
}

// TestUnreachableMember is entry 28 of the pain points: what a member said before its API server was stopped, or its agent, is
// not its health now. The placement says that it does not know, of that member alone, and why.
func TestUnreachableMember(t *testing.T) {
	hub := clientFor(t, fleet, "hub")
	const name = "unreachable"
	placement := placeWeb(t, hub, name)
	for what, tc := range map[string]struct{ process, want string }{
		"the API server": {"member2-apiserver", "unhealthy since "},
		"the agent":      {quickstart.AgentProcess + "member2", "no recent heartbeat signals (last received at "},
	} {
		start := stop(t, tc.process)
		framework.Await(t, hub, placement, "does not know how member2 is without "+what, func(p *placementv1.ClusterResourcePlacement) bool {
			c := rowCondition(p, "member2", placementv1.ConditionAvailable)
			return c.Status == metav1.ConditionUnknown && strings.Contains(c.Message, "not connected to the fleet: "+tc.want) &&
				condition(p.Status.Conditions, "ClusterResourcePlacementAvailable") == "Unknown/"+placementv1.ReasonResourceAvailableUnknown
		})
		if c := meta.FindStatusCondition(placement.Status.Conditions, "ClusterResourcePlacementAvailable"); !strings.HasSuffix(c.Message, ": member2") {
			t.Errorf("without %s the placement says %q", what, c.Message)
		}
		for _, other := range []string{"member1", "member3"} {
			if c := rowCondition(placement, other, placementv1.ConditionAvailable); c.Status == metav1.ConditionUnknown {
				t.Errorf("without %s of member2 %s is %s: %s", what, other, c.Status, c.Message)
			}
		}
		// How long a member may be silent has bounds, and what is out of them changes nothing.
		silent := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"heartbeatPeriodSeconds":601}}`))
		cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member2"}}
		if err := hub.Patch(t.Context(), cluster, silent); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.heartbeatPeriodSeconds") {
			t.Errorf("without %s, a heartbeat period of 601 s: %v, want it refused by name", what, err)
		}
		start()
		awaitAvailable(t, hub, placement)
	}
}

// TestForcedLeave is entry 29 of the pain points: a member that is dead, its agent included, is let go after the time that the
// hub waits, and nothing of it stays behind on the hub. What was placed stays in the member, an event says of which placement,
// and it is taken up in place when the member joins anew.
func TestForcedLeave(t *testing.T) {
	hub, member := clientFor(t, fleet, "hub"), clientFor(t, fleet, "member3")
	const name = "forced"
	placement := placeWeb(t, hub, name)
	before := web(name)
	framework.Await(t, member, before, "exists", func(*appsv1.Deployment) bool { return true })
	hubWith := exec.CommandContext(t.Context(), filepath.Join(fleet.Root, "bin", "fleetwright-hub"), "--kubeconfig", fleet.Kubeconfig(), "--force-leave-after", "-10s")
	if out, err := hubWith.CombinedOutput(); err == nil || !strings.Contains(string(out), "--force-leave-after=-10s: it must not be less than 0") {
		t.Errorf("a hub that is to wait for less than no time: error %v, and it says %s", err, out)
	}
	impatient := *fleet
	impatient.HubArgs = append(slices.Clone(fleet.HubArgs), "--force-leave-after", "10s")
	restartHub(t.Context(), t, &impatient)
	t.Cleanup(func() { restartHub(framework.CleanupContext(t), t, fleet) })
	start := stop(t, "member3-apiserver", quickstart.AgentProcess+"member3")

	cluster := &clusterv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member3"}}
	if err := hub.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	framework.AwaitGone(t, hub, cluster)
	framework.AwaitGone(t, hub, namespace("fleet-member-member3"))
	framework.Await(t, hub, placement, "is on the two others", func(p *placementv1.ClusterResourcePlacement) bool {
		return p.Status.ClusterSummary != nil && p.Status.ClusterSummary.Selected == 2 && p.Status.ClusterSummary.Available == 2
	})
	bindings := &placementv1.ClusterResourceBindingList{}
	if err := hub.List(t.Context(), bindings, client.MatchingLabels{placementv1.LabelParentPlacement: name}); err != nil {
		t.Fatal(err)
	}
	for i := range bindings.Items {
		if b := &bindings.Items[i]; b.Spec.TargetCluster == "member3" && b.DeletionTimestamp == nil {
			t.Errorf("binding %s to the member that left is still there: %+v", b.Name, b.Spec)
		}
	}
	if got := notesOf(t, hub, "MemberClusterForceLeft", "member3"); !strings.Contains(got, `ClusterResourcePlacement "`+name+`"`) {
		t.Errorf("no event says what stays in the member: %q", got)
	}

	start()
	collectGarbage(t, member)
	steadyUID(t, member, name, before, "its cluster was made to leave")
	if err := fleet.Rejoin(t.Context(), "member3"); err != nil {
		t.Fatal(err)
	}
	framework.Await(t, hub, placement, "is on three members again", func(p *placementv1.ClusterResourcePlacement) bool {
		return p.Status.ClusterSummary != nil && p.Status.ClusterSummary.Available == 3
	})
	steadyUID(t, member, name, before, "its cluster joined again")
}

// restartHub has the hub run with the arguments of a fleet.
func restartHub(ctx context.Context, t *testing.T, f *quickstart.Fleet) {
	t.Helper()
	if err := f.Sandbox(ctx, "kill", quickstart.HubProcess); err != nil {
		t.Errorf("stop the hub: %v", err)
	}
	if err := f.Up(ctx); err != nil {
		t.Errorf("start the hub with the arguments %v: %v", f.HubArgs, err)
	}
}

// notesOf puts together what the events of a reason about an object say.
func notesOf(t *testing.T, hub client.Client, reason, object string) string {
	t.Helper()
	events := &eventsv1.EventList{}
	if err := hub.List(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	var notes []string
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == reason && e.Regarding.Name == object {
			notes = append(notes, e.Note)
		}
	}
	return strings.Join(notes, "\n")
}
