package division

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAffinitiesSpillOver: where room counts, groups of clusters are filled in their order, and emptied from the last.
func TestAffinitiesSpillOver(t *testing.T) {
	t.Parallel()
	groups := []Group{{Name: "own", Matches: named("member1", "member2")}, {Name: "rented", Matches: named("member3")}, {Name: "any"}}
	for name, tc := range map[string]struct {
		strategy     Strategy
		replicas     int32
		room         []int64
		current      map[string]int32
		rebalance    bool
		want         map[string]int32
		wantAffinity string
	}{
		"the first holds all":             {replicas: 8, room: []int64{5, 5, 9, 9}, want: shares(4, 4), wantAffinity: "own"},
		"what does not fit goes on":       {replicas: 12, room: []int64{5, 5, 9, 9}, want: shares(5, 5, 2), wantAffinity: "rented"},
		"and on":                          {replicas: 22, room: []int64{5, 5, 9, 9}, want: shares(5, 5, 9, 3), wantAffinity: "any"},
		"more go to the first again":      {replicas: 14, room: []int64{0, 1, 9, 9}, current: shares(5, 5, 2), want: shares(5, 6, 3), wantAffinity: "rented"},
		"the last goes first":             {replicas: 9, room: []int64{0, 0, 0, 0}, current: shares(5, 5, 2), want: shares(5, 4, 0), wantAffinity: "own"},
		"the last goes first, in part":    {replicas: 11, room: []int64{0, 0, 0, 0}, current: shares(5, 5, 2), want: shares(5, 5, 1), wantAffinity: "rented"},
		"unchanged, the first has room":   {replicas: 12, room: []int64{9, 9, 9, 9}, current: shares(5, 5, 2), want: shares(5, 5, 2), wantAffinity: "rented"},
		"a rebalance begins at the first": {replicas: 12, room: []int64{9, 9, 9, 9}, current: shares(5, 5, 2), rebalance: true, want: shares(6, 6, 0), wantAffinity: "own"},
		"none are wanted":                 {replicas: 0, room: []int64{5, 5, 9, 9}, want: shares(0, 0), wantAffinity: "own"},
		"scaled to none":                  {replicas: 0, room: []int64{5, 5, 9, 9}, current: shares(5, 5, 2), want: shares(0, 0, 0), wantAffinity: "own"},
		"the fewest of each":              {strategy: Aggregated, replicas: 12, room: []int64{5, 6, 9, 9}, want: shares(5, 6, 1), wantAffinity: "rented"},
		"the fewest of the first":         {strategy: Aggregated, replicas: 6, room: []int64{5, 6, 9, 9}, want: map[string]int32{"member2": 6}, wantAffinity: "own"},
		"each has all of the first":       {strategy: Duplicated, replicas: 6, room: []int64{0, 0, 9, 9}, want: shares(6, 6), wantAffinity: "own"},
		"by weights over the first":       {strategy: StaticWeights, replicas: 6, room: []int64{0, 0, 9, 9}, want: shares(3, 3), wantAffinity: "own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.strategy == "" {
				tc.strategy = AvailableReplicas
			}
			r := ask(tc.strategy, tc.replicas, fleet(tc.room...))
			r.Policy.Groups, r.Current, r.Rebalance = groups, tc.current, tc.rebalance
			got := Divide(r)
			if diff := cmp.Diff(tc.want, got.ByCluster()); diff != "" || got.Problem != nil {
				t.Errorf("problem %v, shares (-want +got):\n%s", got.Problem, diff)
			}
			if got.Affinity != tc.wantAffinity {
				t.Errorf("the affinity is %q, want %q", got.Affinity, tc.wantAffinity)
			}
		})
	}
}

// TestAffinitiesFallBack: where room does not count, the first group has it all in which a cluster can be selected, and keeps it.
func TestAffinitiesFallBack(t *testing.T) {
	t.Parallel()
	r := ask(Duplicated, 2, fleet(0, 0, 0))
	r.Policy.Groups = []Group{{Name: "first", Matches: named("member1")}, {Name: "second", Matches: named("member2", "member3")}}
	r.Clusters[0].Disconnected = "no heartbeat"
	step := func(what string, want map[string]int32, affinity string) {
		t.Helper()
		got := Divide(r)
		if diff := cmp.Diff(want, got.ByCluster()); diff != "" || got.Affinity != affinity || got.Problem != nil {
			t.Fatalf("%s: affinity %q, problem %v, shares (-want +got):\n%s", what, got.Affinity, got.Problem, diff)
		}
		r.Current, r.Affinity = got.ByCluster(), got.Affinity
	}
	second, first := map[string]int32{"member2": 2, "member3": 2}, shares(2)
	step("the first is cut off", second, "second")
	r.Clusters[0].Disconnected = ""
	step("the first is back", second, "second")
	r.Rebalance = true
	step("rebalanced", first, "first")
	r.Rebalance = false
	r.Clusters[0].Leaving = true
	step("the first leaves", second, "second")
	r.Clusters[0].Leaving = false
	r.Clusters[1].Leaving, r.Clusters[2].Leaving = true, true
	step("the second leaves", first, "first")
}

// places gives clusters what follows their names: "r=east", "z=a", "z=b", "p=cloud", "l=value" of label tier.
func places(clusters []Cluster, of ...string) []Cluster {
	for i := range of {
		for word := range strings.FieldsSeq(of[i]) {
			key, value, _ := strings.Cut(word, "=")
			switch c := &clusters[i]; key {
			case "r":
				c.Region = value
			case "p":
				c.Provider = value
			case "z":
				c.Zones = append(c.Zones, value)
			case "l":
				c.Labels = map[string]string{"tier": value}
			}
		}
	}
	return clusters
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request     Request
		spread      []Spread
		want        []string // of members, by number
		wantProblem string
	}{
		"no limit takes all":               {request: ask(Duplicated, 1, fleet(1, 1, 1)), spread: []Spread{{By: ByCluster, Min: 1}}, want: []string{"1", "2", "3"}},
		"as many clusters as may be":       {request: ask(Duplicated, 1, fleet(1, 1, 1)), spread: []Spread{{By: ByCluster, Min: 1, Max: 2}}, want: []string{"1", "2"}},
		"those that have it stay":          {request: ask(Duplicated, 1, fleet(9, 9, 1)).with(has(map[string]int32{"member3": 1})), spread: []Spread{{By: ByCluster, Max: 2}}, want: []string{"1", "3"}},
		"bigger ones where room lacks":     {request: ask(AvailableReplicas, 10, fleet(1, 5, 7)).with(has(map[string]int32{"member1": 2})), spread: []Spread{{By: ByCluster, Max: 2}}, want: []string{"1", "3"}},
		"bigger ones than one that has it": {request: ask(AvailableReplicas, 12, fleet(1, 5, 7)).with(has(map[string]int32{"member1": 2})), spread: []Spread{{By: ByCluster, Max: 2}}, want: []string{"2", "3"}},
		"too few clusters":                 {request: ask(Duplicated, 1, fleet(1, 1, 1)), spread: []Spread{{By: ByCluster, Min: 4}}, wantProblem: "the policy wants clusters of 4 groups by cluster at the least, and those that may be selected are of 3: join clusters of other groups, or lower minGroups"},
		"one region":                       {request: ask(Duplicated, 1, places(fleet(5, 1, 1, 9), "r=e", "r=e", "r=w", "r=w")), spread: []Spread{{By: ByRegion, Max: 1}}, want: []string{"3", "4"}},
		"one region, with the room":        {request: ask(AvailableReplicas, 12, places(fleet(6, 6, 1, 9), "r=e", "r=e", "r=w", "r=w")), spread: []Spread{{By: ByRegion, Max: 1}}, want: []string{"1", "2"}},
		"two regions, two clusters":        {request: ask(Duplicated, 1, places(fleet(9, 8, 1, 1), "r=e", "r=e", "r=w", "r=w")), spread: []Spread{{By: ByRegion, Min: 2}, {By: ByCluster, Max: 2}}, want: []string{"1", "3"}},
		"two providers":                    {request: ask(Duplicated, 1, places(fleet(9, 8, 1), "p=a", "p=a", "p=b")), spread: []Spread{{By: ByProvider, Min: 2}, {By: ByCluster, Max: 2}}, want: []string{"1", "3"}},
		"two values of a label":            {request: ask(Duplicated, 1, places(fleet(9, 8, 1, 9), "l=gold", "l=gold", "l=tin", "")), spread: []Spread{{By: ByLabel, Label: "tier", Min: 2}, {By: ByCluster, Max: 2}}, want: []string{"1", "3"}},
		"a cluster in three zones":         {request: ask(Duplicated, 1, places(fleet(1, 9, 9), "z=a z=b z=c", "z=a", "z=b")), spread: []Spread{{By: ByZone, Min: 3}, {By: ByCluster, Max: 1}}, want: []string{"1"}},
		"no more than two zones":           {request: ask(Duplicated, 1, places(fleet(9, 1, 1), "z=a z=b z=c", "z=a", "z=b")), spread: []Spread{{By: ByZone, Max: 2}}, want: []string{"2", "3"}},
		"least and most exclude":           {request: ask(Duplicated, 1, places(fleet(1, 1), "r=e", "r=w")), spread: []Spread{{By: ByRegion, Min: 2}, {By: ByCluster, Max: 1}}, wantProblem: "no selection of clusters was found that keeps to all spreadConstraints (2 to any number by region, 0 to 1 by cluster): lower minGroups or raise maxGroups"},
		"no static weights":                {request: ask(StaticWeights, 6, fleet(1, 1, 1)), spread: []Spread{{By: ByCluster, Max: 1}}, want: []string{"1", "2", "3"}},
		"the room of two of one region":    {request: ask(AvailableReplicas, 10, places(fleet(6, 3, 3, 5, 5), "r=e", "r=e", "r=e", "r=w", "r=w")), spread: []Spread{{By: ByRegion, Max: 1}, {By: ByCluster, Max: 2}}, want: []string{"4", "5"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.request.Policy.Spread = tc.spread
			got := Divide(tc.request)
			if tc.wantProblem != "" {
				if got.Problem == nil || got.Problem.Error() != tc.wantProblem {
					t.Fatalf("the problem is %v", got.Problem)
				}
				return
			}
			if got.Problem != nil {
				t.Fatal(got.Problem)
			}
			var selected []string
			for _, s := range got.Shares {
				selected = append(selected, strings.TrimPrefix(s.Cluster, "member"))
			}
			if !slices.Equal(selected, tc.want) {
				t.Errorf("selected are %v, want %v", selected, tc.want)
			}
			if tc.request.Policy.Strategy == StaticWeights && !strings.Contains(fmt.Sprint(got.Notes), "not looked at") {
				t.Errorf("nothing says that the constraint does not count: %q", got.Notes)
			}
		})
	}
}
