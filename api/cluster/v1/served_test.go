package v1_test

import (
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
	"github.com/fleetwright/fleetwright/test/framework"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const group = "cluster.kubernetes-fleet.io"

// TestServedKinds looks at what `kubectl api-resources` shows: both versions, short names, categories.
func TestServedKinds(t *testing.T) {
	ours := []string{"fleet", "fleet-cluster"}
	want := map[string]apitest.Served{
		"memberclusters":         {Kind: "MemberCluster", ShortNames: []string{"cluster"}, Categories: ours, Status: true},
		"internalmemberclusters": {Kind: "InternalMemberCluster", Namespaced: true, ShortNames: []string{"imc"}, Categories: ours, Status: true},
	}
	for _, version := range []string{"v1", "v1beta1"} {
		if diff := cmp.Diff(want, apitest.Kinds(t, hub, group+"/"+version)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

// TestColumns looks at what `kubectl get memberclusters` and `kubectl get internalmemberclusters` print.
func TestColumns(t *testing.T) {
	server := framework.StartAPIServer(t)
	c := framework.Client(t, server)
	member := apitest.Parse(t, named("member1"))
	if err := c.Create(t.Context(), member); err != nil {
		t.Fatalf("create a member cluster: %v", err)
	}
	status := `{"status":{
		"conditions":[{"type":"Joined","status":"True","reason":"r","message":"m","lastTransitionTime":"2026-01-02T03:04:05Z"}],
		"properties":{"kubernetes-fleet.io/node-count":{"value":"2","observationTime":"2026-01-02T03:04:05Z"}},
		"resourceUsage":{"allocatable":{"cpu":"16","memory":"64Gi"},"available":{"cpu":"15500m","memory":"60Gi"}}}}`
	if err := c.Status().Patch(t.Context(), member, client.RawPatch(types.MergePatchType, []byte(status))); err != nil {
		t.Fatalf("set the status: %v", err)
	}
	internal := apitest.Parse(t, "{apiVersion: cluster.kubernetes-fleet.io/v1, kind: InternalMemberCluster, metadata: {namespace: default, name: member1}, spec: {state: Join}}")
	if err := c.Create(t.Context(), internal); err != nil {
		t.Fatalf("create an internal member cluster: %v", err)
	}
	agent := `{"status":{"agentStatus":[{"type":"MemberAgent","conditions":[
		{"type":"Joined","status":"True","reason":"r","message":"m","lastTransitionTime":"2026-01-02T03:04:05Z"},
		{"type":"Healthy","status":"False","reason":"r","message":"m","lastTransitionTime":"2026-01-02T03:04:05Z"}]}]}}`
	if err := c.Status().Patch(t.Context(), internal, client.RawPatch(types.MergePatchType, []byte(agent))); err != nil {
		t.Fatalf("set the agent's status: %v", err)
	}
	for _, version := range []string{"v1", "v1beta1"} {
		want := `
NAME      ASKED   JOINED   HEALTHY   LAST-SEEN   AGE
member1   Join    True     False                 AGE`
		if diff := cmp.Diff(want, "\n"+apitest.Printed(t, server, "/apis/"+group+"/"+version+"/namespaces/default/internalmemberclusters", false)); diff != "" {
			t.Errorf("kubectl get, in %s (-want +got):\n%s", version, diff)
		}
		path := "/apis/" + group + "/" + version + "/memberclusters"
		want = `
NAME      JOINED   AGE   MEMBER-AGENT-LAST-SEEN   NODE-COUNT   AVAILABLE-CPU   AVAILABLE-MEMORY
member1   True     AGE                            2            15500m          60Gi`
		if diff := cmp.Diff(want, "\n"+apitest.Printed(t, server, path, false)); diff != "" {
			t.Errorf("kubectl get, in %s (-want +got):\n%s", version, diff)
		}
		want = `
NAME      JOINED   AGE   MEMBER-AGENT-LAST-SEEN   NODE-COUNT   AVAILABLE-CPU   AVAILABLE-MEMORY   ALLOCATABLE-CPU   ALLOCATABLE-MEMORY
member1   True     AGE                            2            15500m          60Gi               16                64Gi`
		if diff := cmp.Diff(want, "\n"+apitest.Printed(t, server, path, true)); diff != "" {
			t.Errorf("kubectl get -o wide, in %s (-want +got):\n%s", version, diff)
		}
	}
}
