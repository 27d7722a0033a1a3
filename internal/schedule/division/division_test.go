package division

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

const (
	// The hash of one is even, of the other odd.
	even = types.UID("uid-2")
	odd  = types.UID("uid-1")
)

// fleet makes clusters member1, member2, … with some room.
func fleet(room ...int64) []Cluster {
	clusters := make([]Cluster, len(room))
	for i := range room {
		clusters[i] = Cluster{Name: fmt.Sprint("member", i+1), Room: room[i]}
	}
	return clusters
}

// shares makes a map of member1, member2, … to what each has.
func shares(of ...int32) map[string]int32 {
	all := map[string]int32{}
	for i := range of {
		all[fmt.Sprint("member", i+1)] = of[i]
	}
	return all
}

// named matches clusters by name.
func named(names ...string) func(*Cluster) bool {
	return func(c *Cluster) bool { return sets.New(names...).Has(c.Name) }
}

// weights are rules for member1, member2, …
func weights(of ...int64) []WeightRule {
	var rules []WeightRule
	for i, w := range of {
		rules = append(rules, WeightRule{Matches: named(fmt.Sprint("member", i+1)), Weight: w})
	}
	return rules
}

func ask(strategy Strategy, replicas int32, clusters []Cluster) Request {
	return Request{Policy: Policy{Strategy: strategy}, Replicas: &replicas, Clusters: clusters}
}

// with changes a request.
func (r Request) with(change func(*Request)) Request {
	change(&r)
	return r
}

func has(current map[string]int32) func(*Request) {
	return func(r *Request) { r.Current = current }
}

func rebalances(current map[string]int32) func(*Request) {
	return func(r *Request) { r.Current, r.Rebalance = current, true }
}

func TestDivideByStrategy(t *testing.T) {
	t.Parallel()
	static := func(replicas int32, of ...int64) Request {
		r := ask(StaticWeights, replicas, fleet(make([]int64, len(of))...))
		r.Policy.Weights = weights(of...)
		return r
	}
	uid := func(uid types.UID) func(*Request) { return func(r *Request) { r.UID = uid } }
	for name, tc := range map[string]struct {
		request Request
		want    map[string]int32
	}{
		"duplicated":                      {ask(Duplicated, 3, fleet(0, 9)), shares(3, 3)},
		"duplicated, none wanted":         {ask(Duplicated, 0, fleet(0, 9)), shares(0, 0)},
		"no replicas at all":              {ask(AvailableReplicas, 0, fleet(0, 9)).with(func(r *Request) { r.Replicas = nil }), shares(0, 0)},
		"static":                          {static(9, 1, 2), shares(3, 6)},
		"static, scaled up":               {static(12, 6, 12, 18).with(has(shares(1, 1, 1))), shares(2, 4, 6)},
		"static, other weights":           {static(10, 5, 5).with(has(shares(10, 0))), shares(5, 5)},
		"static, no rules":                {static(9).with(func(r *Request) { r.Clusters = fleet(0, 0, 0) }), shares(3, 3, 3)},
		"static, no rule for one":         {static(9, 1, 2).with(func(r *Request) { r.Clusters = fleet(0, 0, 0) }), shares(3, 6)},
		"static, the rule of one is gone": {static(9, 1, 2).with(func(r *Request) { r.Clusters = fleet(0, 0, 0) }).with(has(shares(3, 3, 3))), shares(3, 6, 0)},
		"static, no rule for any":         {static(8).with(func(r *Request) { r.Clusters, r.Policy.Weights = fleet(0, 0), weights(0, 0, 7)[2:] }), shares(4, 4)},
		"static, the greatest rule counts": {static(8, 1, 1).with(func(r *Request) {
			r.Policy.Weights = append(r.Policy.Weights, WeightRule{Matches: named("member2"), Weight: 3})
		}), shares(2, 6)},
		"static, none wanted":              {static(0, 1, 2).with(func(r *Request) { r.Clusters = fleet(0, 0, 0) }), shares(0, 0)},
		"static, too small a weight":       {static(2, 7, 1), map[string]int32{"member1": 2}},
		"first time":                       {ask(AvailableReplicas, 8, fleet(7, 7)), shares(4, 4)},
		"first time, 10 and 12":            {ask(AvailableReplicas, 8, fleet(10, 12)), shares(4, 4)},
		"first time, 10 and 14":            {ask(AvailableReplicas, 8, fleet(10, 14)), shares(3, 5)},
		"first time, 6 and 18":             {ask(AvailableReplicas, 8, fleet(6, 18)), shares(2, 6)},
		"first time, odd, one way":         {ask(AvailableReplicas, 7, fleet(10, 10)).with(uid(even)), shares(4, 3)},
		"first time, odd, the other":       {ask(AvailableReplicas, 7, fleet(10, 10)).with(uid(odd)), shares(3, 4)},
		"first time, room unknown":         {ask(AvailableReplicas, 8, fleet(UnknownRoom, UnknownRoom)), shares(4, 4)},
		"from zero":                        {ask(AvailableReplicas, 8, fleet(7, 7)).with(has(shares(0, 0))), shares(4, 4)},
		"from zero to one":                 {ask(AvailableReplicas, 1, fleet(7, 7)).with(has(shares(0, 0))), shares(1, 0)},
		"one, the first time":              {ask(AvailableReplicas, 1, fleet(7, 7)), map[string]int32{"member1": 1}},
		"none wanted":                      {ask(AvailableReplicas, 0, fleet(7, 0)), shares(0, 0)},
		"scaled up, as much room":          {ask(AvailableReplicas, 11, fleet(6, 6)).with(has(shares(4, 4))), shares(6, 5)},
		"scaled up, the other way":         {ask(AvailableReplicas, 11, fleet(6, 6)).with(has(shares(4, 4))).with(uid(odd)), shares(5, 6)},
		"scaled up, 2 and 9":               {ask(AvailableReplicas, 11, fleet(2, 9)).with(has(shares(4, 4))), shares(5, 6)},
		"scaled down, 4 and 4":             {ask(AvailableReplicas, 5, fleet(0, 9)).with(has(shares(4, 4))), shares(3, 2)},
		"scaled down, the other way":       {ask(AvailableReplicas, 5, fleet(0, 9)).with(has(shares(4, 4))).with(uid(odd)), shares(2, 3)},
		"scaled down, 5 and 3":             {ask(AvailableReplicas, 5, fleet(0, 9)).with(has(shares(5, 3))), shares(3, 2)},
		"scaled down, 7 and 1":             {ask(AvailableReplicas, 2, fleet(9, 9)).with(has(shares(7, 1))), shares(2, 0)},
		"scaled down to none":              {ask(AvailableReplicas, 0, fleet(0, 9)).with(has(shares(4, 4))), shares(0, 0)},
		"unchanged, no room any more":      {ask(AvailableReplicas, 8, fleet(0, 0)).with(has(shares(6, 2))), shares(6, 2)},
		"unchanged, a cluster has joined":  {ask(AvailableReplicas, 8, fleet(0, 0, 99)).with(has(shares(6, 2))), shares(6, 2)},
		"a cluster is lost":                {ask(AvailableReplicas, 8, fleet(3, 5)).with(has(map[string]int32{"member1": 4, "member9": 4})), map[string]int32{"member1": 6, "member2": 2}},
		"rebalanced":                       {ask(AvailableReplicas, 8, fleet(2, 10)).with(rebalances(shares(6, 2))), shares(3, 5)},
		"aggregated":                       {ask(Aggregated, 8, fleet(5, 9, 9)), map[string]int32{"member2": 8}},
		"aggregated, over two":             {ask(Aggregated, 12, fleet(5, 9, 9)), map[string]int32{"member2": 6, "member3": 6}},
		"aggregated, used ones first":      {ask(Aggregated, 9, fleet(5, 99)).with(has(map[string]int32{"member1": 4})), map[string]int32{"member1": 9}},
		"aggregated, used and then bigger": {ask(Aggregated, 12, fleet(5, 5, 50)).with(has(map[string]int32{"member1": 4})), map[string]int32{"member1": 5, "member3": 7}},
		"aggregated, scaled down":          {ask(Aggregated, 5, fleet(0, 0)).with(has(shares(3, 5))), shares(0, 5)},
		"aggregated, unchanged":            {ask(Aggregated, 8, fleet(9, 9)).with(has(shares(3, 5))), shares(3, 5)},
		"aggregated, rebalanced":           {ask(Aggregated, 8, fleet(1, 1, 20)).with(rebalances(map[string]int32{"member1": 3, "member2": 5})), shares(0, 0, 8)},
		"the most there can be":            {ask(AvailableReplicas, 1<<31-1, fleet(1<<40, 1<<40)), shares(1<<30, 1<<30-1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Divide(tc.request)
			if got.Problem != nil {
				t.Fatal(got.Problem)
			}
			if diff := cmp.Diff(tc.want, got.ByCluster()); diff != "" {
				t.Errorf("shares (-want +got):\n%s", diff)
			}
			for _, d := range got.Decisions {
				if d.Reason == "" {
					t.Errorf("nothing says why %s gets what it gets", d.Cluster)
				}
			}
		})
	}
}

func TestShortage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request Request
		want    string
	}{
		"first time": {
			ask(AvailableReplicas, 8, fleet(5, 2)),
			"8 replicas are wanted, 7 fit: member1 5, member2 2; 1 is missing: add nodes or free capacity in these clusters, let the policy select further ones, " +
				"or ask for 7 at most; until then nothing is changed",
		},
		"scaled up": {
			ask(Aggregated, 20, fleet(5, 2)).with(has(shares(4, 4))),
			"20 replicas are wanted, 15 fit: member1 9, member2 6; 5 are missing: add nodes or free capacity in these clusters, let the policy select further ones, " +
				"or ask for 15 at most; until then nothing is changed",
		},
		"rebalanced": {
			ask(AvailableReplicas, 20, fleet(5, 2)).with(rebalances(shares(4, 4))),
			"20 replicas are wanted, 15 fit: member1 9, member2 6; 5 are missing: add nodes or free capacity in these clusters, let the policy select further ones, " +
				"or ask for 15 at most; until then nothing is changed",
		},
		"many clusters": {
			ask(AvailableReplicas, 14, fleet(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2)),
			"14 replicas are wanted, 13 fit: member12 2, member1 1, member10 1, member11 1, member2 1, member3 1, member4 1, member5 1, member6 1, member7 1 and 2 in 2 more; " +
				"1 is missing: add nodes or free capacity in these clusters, let the policy select further ones, or ask for 13 at most; until then nothing is changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Divide(tc.request)
			var shortage *Shortage
			if !errors.As(got.Problem, &shortage) {
				t.Fatalf("the problem is %v", got.Problem)
			}
			if diff := cmp.Diff(tc.want, shortage.Error()); diff != "" {
				t.Error(diff)
			}
			was := tc.request.Current
			if was == nil {
				was = map[string]int32{}
			}
			if diff := cmp.Diff(was, got.ByCluster()); diff != "" {
				t.Errorf("something is changed:\n%s", diff)
			}
		})
	}
}

// placing is a cluster beside member2, which may be given all, and what is said of it.
func TestFilters(t *testing.T) {
	t.Parallel()
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	taint := corev1.Taint{Key: "maintenance", Value: "now", Effect: corev1.TaintEffectNoExecute}
	for name, tc := range map[string]struct {
		cluster    Cluster
		change     func(*Request)
		chosen     bool // where the object is not placed yet
		keeps      bool // where it is
		wantReason string
	}{
		"nothing against it":       {chosen: true, keeps: true},
		"leaving":                  {cluster: Cluster{Leaving: true}, wantReason: "cluster has left the fleet, or is leaving it"},
		"affinity":                 {change: func(r *Request) { r.Policy.Groups = []Group{{Matches: named("member2")}} }, wantReason: "no cluster affinity of the policy matches the cluster"},
		"taint":                    {cluster: Cluster{Taints: []corev1.Taint{taint}}, keeps: true, wantReason: "taint {maintenance=now:NoExecute} cannot be tolerated"},
		"a taint that prefers":     {cluster: Cluster{Taints: []corev1.Taint{{Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule}}}, chosen: true, keeps: true},
		"a taint that is accepted": {cluster: Cluster{Taints: []corev1.Taint{taint}}, change: func(r *Request) { r.Policy.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }, chosen: true, keeps: true},
		"kind not served":          {cluster: Cluster{Kinds: sets.New[schema.GroupVersionKind]()}, keeps: true, wantReason: "cluster does not serve Deployment of apps/v1"},
		"kind served":              {cluster: Cluster{Kinds: sets.New(deployment)}, chosen: true, keeps: true},
		"suspended":                {cluster: Cluster{Suspended: true}, keeps: true, wantReason: "the policy suspends the cluster: nothing is written to it"},
		"disconnected":             {cluster: Cluster{Disconnected: "no heartbeat"}, keeps: true, wantReason: "cluster is not connected to the fleet: no heartbeat"},
		"without a region":         {change: func(r *Request) { r.Policy.Spread = []Spread{{By: ByRegion, Min: 1}} }, wantReason: "cluster has no region, by which the policy spreads"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, held := range []bool{false, true} {
				tc.cluster.Name = "member1"
				r := ask(Duplicated, 3, []Cluster{tc.cluster, {Name: "member2", Region: "east"}})
				r.Kind = deployment
				if tc.change != nil {
					tc.change(&r)
				}
				want, wantReason := tc.chosen, tc.wantReason
				if held {
					r.Current = shares(3)
					want, wantReason = tc.keeps, "what was placed there is removed: "+tc.wantReason
				}
				got := Divide(r)
				d := got.Decisions[0]
				if d.Selected != want || got.Problem != nil {
					t.Errorf("held %v: selected %v, problem %v", held, d.Selected, got.Problem)
				}
				if !want && d.Reason != wantReason {
					t.Errorf("held %v: the reason is %q, want %q", held, d.Reason, wantReason)
				}
			}
		})
	}
}

func TestNoFit(t *testing.T) {
	t.Parallel()
	clusters := fleet(9, 9, 9)
	clusters[0].Taints = []corev1.Taint{{Key: "full", Effect: corev1.TaintEffectNoSchedule}}
	r := ask(AvailableReplicas, 3, clusters)
	r.Policy.Groups = []Group{{Matches: named("member1")}}
	got := Divide(r)
	want := "0/3 clusters are available: 2 not matched by the policy's cluster affinity, 1 with a taint that is not tolerated"
	if got.Problem == nil || got.Problem.Error() != want || len(got.Shares) > 0 {
		t.Errorf("the problem is %v, want %s; shares %v", got.Problem, want, got.Shares)
	}
	// What is placed stays where nothing is found: a mistake in a policy takes nothing away.
	r.Current = map[string]int32{"member3": 3}
	if got = Divide(r); !cmp.Equal(got.ByCluster(), r.Current) || !strings.Contains(got.Decisions[2].Reason, "otherwise it would be taken away") {
		t.Errorf("%+v", got)
	}
	if got = Divide(ask(Duplicated, 3, nil)); got.Problem == nil || got.Problem.Error() != "the fleet has no clusters; join some" {
		t.Errorf("an empty fleet: %v", got.Problem)
	}
}

func TestPolicyErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request Request
		want    string
	}{
		"strategy":   {ask("Gang", 1, fleet(1)), `the way "Gang" of dividing replicas is not known to this hub`},
		"replicas":   {ask(Duplicated, -1, fleet(1)), "-1 replicas cannot be divided; ask for 0 or more"},
		"weight":     {ask(StaticWeights, 1, fleet(1)).with(func(r *Request) { r.Policy.Weights = weights(0) }), "a weight of 0 is not possible; give 1 to 2147483647"},
		"spread":     {ask(Duplicated, 1, fleet(1)).with(func(r *Request) { r.Policy.Spread = []Spread{{By: "rack"}} }), `spreading by "rack" is not known to this hub; spread by cluster, region, zone, provider or a label`},
		"label":      {ask(Duplicated, 1, fleet(1)).with(func(r *Request) { r.Policy.Spread = []Spread{{By: ByLabel}} }), "a spread constraint by label names no label"},
		"min beyond": {ask(Duplicated, 1, fleet(1)).with(func(r *Request) { r.Policy.Spread = []Spread{{By: ByZone, Min: 3, Max: 2}} }), "from 3 to 2 groups by zone is not possible; give a maxGroups of minGroups or more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Divide(tc.request.with(has(shares(7))))
			var mistake *PolicyError
			if !errors.As(got.Problem, &mistake) || mistake.Error() != tc.want {
				t.Errorf("the problem is %v, want %s", got.Problem, tc.want)
			}
			if !cmp.Equal(got.ByCluster(), shares(7)) {
				t.Errorf("something is changed: %v", got.Shares)
			}
		})
	}
}

func TestSuspendedIsFrozen(t *testing.T) {
	t.Parallel()
	suspend := func(r *Request) { r.Clusters[0].Suspended = true }
	static := func(replicas int32) Request {
		r := ask(StaticWeights, replicas, fleet(0, 0))
		r.Policy.Weights = weights(1, 2)
		return r
	}
	for name, tc := range map[string]struct {
		request  Request
		want     map[string]int32
		wantNote string
	}{
		"static, scaled down":           {request: static(2).with(has(shares(1, 2))), want: shares(1, 1)},
		"static, below what it has":     {request: static(0).with(has(shares(1, 2))), want: shares(1, 0), wantNote: "suspended clusters keep 1 replicas, which are 1 more than are wanted"},
		"dynamic, scaled up":            {request: ask(AvailableReplicas, 12, fleet(99, 9)).with(has(shares(4, 4))), want: shares(4, 8)},
		"dynamic, scaled down":          {request: ask(AvailableReplicas, 5, fleet(99, 9)).with(has(shares(4, 4))), want: shares(4, 1)},
		"dynamic, rebalanced":           {request: ask(AvailableReplicas, 8, fleet(99, 9)).with(rebalances(shares(4, 4))), want: shares(4, 4)},
		"duplicated":                    {request: ask(Duplicated, 5, fleet(9, 9)).with(has(shares(4, 4))), want: shares(4, 5)},
		"not selected by the policy":    {request: ask(AvailableReplicas, 8, fleet(9, 9)).with(has(shares(4, 4))).with(func(r *Request) { r.Policy.Groups = []Group{{Matches: named("member2")}} }), want: shares(4, 4)},
		"with 0 it stays as well":       {request: ask(AvailableReplicas, 8, fleet(9, 9)).with(has(shares(0, 4))), want: shares(0, 8)},
		"not where it is not yet":       {request: ask(Duplicated, 5, fleet(9, 9)).with(has(map[string]int32{"member2": 4})), want: map[string]int32{"member2": 5}},
		"spread with room for one only": {request: ask(AvailableReplicas, 4, fleet(9, 9)).with(has(shares(4))).with(func(r *Request) { r.Policy.Spread = []Spread{{By: ByCluster, Max: 1}} }), want: shares(4)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Divide(tc.request.with(suspend))
			if diff := cmp.Diff(tc.want, got.ByCluster()); diff != "" || got.Problem != nil {
				t.Errorf("problem %v, shares (-want +got):\n%s", got.Problem, diff)
			}
			if notes := strings.Join(got.Notes, "; "); notes != tc.wantNote {
				t.Errorf("notes are %q, want %q", notes, tc.wantNote)
			}
		})
	}
	r := static(5).with(has(map[string]int32{"member1": 1})).with(suspend)
	r.Policy.Weights = weights(1)
	if got := Divide(r); got.Problem == nil || !cmp.Equal(got.ByCluster(), r.Current) {
		t.Errorf("only a suspended cluster has a weight: %+v", got)
	}
}

func TestInRelease(t *testing.T) {
	t.Parallel()
	release := func(decided int32, current map[string]int32) func(*Request) {
		return func(r *Request) { r.InRelease, r.Decided, r.Current = true, ptr.To(decided), current }
	}
	static := func(replicas int32, of ...int64) Request {
		r := ask(StaticWeights, replicas, fleet(make([]int64, len(of))...))
		r.Policy.Weights = weights(of...)
		return r
	}
	for name, tc := range map[string]struct {
		request    Request
		want       map[string]int32
		wantFrozen bool
	}{
		"nothing moves":                     {ask(AvailableReplicas, 8, fleet(1, 99)).with(release(8, shares(7, 1))).with(func(r *Request) { r.Rebalance = true }), shares(7, 1), true},
		"what was taken is not given again": {ask(AvailableReplicas, 8, fleet(1, 99)).with(release(8, shares(5, 1))), shares(5, 1), true},
		"not what other weights would give": {static(8, 1, 3).with(release(8, shares(4, 4))), shares(4, 4), true},
		"a cluster that is not selected":    {ask(AvailableReplicas, 8, fleet(1, 99)).with(release(8, shares(5, 3))).with(func(r *Request) { r.Policy.Groups = []Group{{Matches: named("member2")}} }), shares(5, 3), true},
		"a cluster that left":               {ask(AvailableReplicas, 8, fleet(1)).with(release(8, shares(5, 3))), shares(5), true},
		"scaled up where it is":             {ask(AvailableReplicas, 10, fleet(5, 0, 99)).with(release(8, shares(4, 4))), shares(6, 4), false},
		"scaled up beyond that":             {ask(AvailableReplicas, 20, fleet(5, 0, 99)).with(release(8, shares(4, 4))), shares(5, 4, 11), false},
		"scaled down":                       {ask(AvailableReplicas, 5, fleet(5, 0, 99)).with(release(8, shares(5, 3))), shares(3, 2), false},
		"scaled down, not selected":         {ask(AvailableReplicas, 5, fleet(5, 9)).with(release(8, shares(5, 3))).with(func(r *Request) { r.Policy.Groups = []Group{{Matches: named("member2")}} }), shares(2, 3), false},
		"static, scaled up as always":       {static(12, 1, 3).with(release(8, shares(2, 6))), shares(3, 9), false},
		"static, up by other weights":       {static(10, 1, 9).with(release(8, shares(4, 4))), shares(4, 6), false},
		"static, down by other weights":     {static(6, 1, 9).with(release(8, shares(4, 4))), shares(3, 3), false},
		"static, a cluster more":            {static(12, 1, 1, 1).with(release(8, shares(4, 4))), shares(6, 6), false},
		"duplicated, scaled":                {ask(Duplicated, 9, fleet(0, 0)).with(release(8, shares(8))), shares(9, 9), false},
		"duplicated, not selected":          {ask(Duplicated, 8, fleet(0, 0)).with(release(8, shares(8, 8))).with(func(r *Request) { r.Policy.Groups = []Group{{Matches: named("member2")}} }), shares(8, 8), false},
		"not placed yet":                    {ask(AvailableReplicas, 8, fleet(9, 9)).with(release(8, nil)), shares(4, 4), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Divide(tc.request)
			if diff := cmp.Diff(tc.want, got.ByCluster()); diff != "" || got.Problem != nil {
				t.Errorf("problem %v, shares (-want +got):\n%s", got.Problem, diff)
			}
			if got.Frozen != tc.wantFrozen {
				t.Errorf("frozen is %v", got.Frozen)
			}
		})
	}
	got := Divide(ask(AvailableReplicas, 8, fleet(1)).with(release(8, shares(5, 3))))
	if want := "3 replicas went with member2, and are not placed elsewhere yet"; !cmp.Equal(got.Notes, []string{want}) {
		t.Errorf("the notes are %q", got.Notes)
	}
}
