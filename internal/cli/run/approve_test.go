package run

import (
	"context"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// busyHub is a hub with one approval request, which somebody else writes just before each of so many patches.
type busyHub struct {
	client.Client
	conflicts, patches int
}

func (h *busyHub) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if requests, ok := list.(*placementv1.ClusterApprovalRequestList); ok {
		requests.Items = []placementv1.ClusterApprovalRequest{{
			ObjectMeta: metav1.ObjectMeta{Name: "web-before-canary", OwnerReferences: []metav1.OwnerReference{{Kind: "ClusterStagedUpdateRun", Name: "web", UID: "1"}}},
			Spec:       placementv1.ApprovalRequestSpec{TargetUpdateRun: "web", TargetStage: "canary"},
		}}
	}
	return nil
}

func (h *busyHub) Status() client.SubResourceWriter { return busyWriter{hub: h} }

type busyWriter struct {
	client.SubResourceWriter
	hub *busyHub
}

func (w busyWriter) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	if w.hub.patches++; w.hub.patches <= w.hub.conflicts {
		return apierrors.NewConflict(schema.GroupResource{Resource: "clusterapprovalrequests"}, "web-before-canary", nil)
	}
	return nil
}

func TestApproveTriesAgainOnce(t *testing.T) {
	t.Parallel()
	run := &placementv1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}
	for conflicts, approved := range []bool{true, true, false} {
		hub := &busyHub{conflicts: conflicts}
		_, err := scope{kinds: placement.ClusterKinds()}.approveOpen(t.Context(), hub, run, "", clocktesting.NewFakePassiveClock(metav1.Now().Time))
		if (err == nil) != approved || hub.patches > 2 {
			t.Errorf("after %d conflicts and %d patches: got error %v, want it approved: %t", conflicts, hub.patches, err, approved)
		}
	}
}
