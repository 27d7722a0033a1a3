package division

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

var strategies = []Strategy{Duplicated, StaticWeights, AvailableReplicas, Aggregated}

// drawCluster draws a cluster of any kind.
func drawCluster(t *rapid.T, name string) Cluster {
	seldom := func(what string) bool { return rapid.IntRange(0, 7).Draw(t, what) == 0 }
	c := Cluster{
		Name: name, Room: rapid.OneOf(rapid.Int64Range(-1, 20), rapid.Int64Range(0, math.MaxInt32)).Draw(t, "room"),
		Region: rapid.SampledFrom([]string{"", "east", "west", "east", "west"}).Draw(t, "region"),
		Zones:  rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "zones"),
		Labels: map[string]string{"tier": rapid.SampledFrom([]string{"gold", "tin"}).Draw(t, "tier")},
	}
	c.Leaving, c.Suspended = seldom("leaving"), seldom("suspended")
	if seldom("disconnected") {
		c.Disconnected = "no heartbeat"
	}
	if seldom("tainted") {
		c.Taints = []corev1.Taint{{Key: "full", Effect: corev1.TaintEffectNoSchedule}}
	}
	return c
}

// drawRequest draws a request of any kind. plain ones have clusters alone that may all be selected.
func drawRequest(t *rapid.T, plain bool) Request {
	r := Request{
		UID: types.UID(rapid.StringN(0, 4, 4).Draw(t, "uid")), Current: map[string]int32{},
		Policy:   Policy{Strategy: rapid.SampledFrom(strategies).Draw(t, "strategy")},
		Replicas: ptr.To(rapid.OneOf(rapid.Int32Range(0, 30), rapid.Int32Range(0, math.MaxInt32-1)).Draw(t, "replicas")),
	}
	even := func(c *Cluster) bool { return (c.Name[1]-'0')%2 == 0 }
	for i := range rapid.IntRange(0, 8).Draw(t, "clusters") {
		name := fmt.Sprint("c", i)
		c := drawCluster(t, name)
		if plain {
			c = Cluster{Name: name, Room: c.Room}
		}
		if rapid.Bool().Draw(t, "has it") {
			r.Current[name] = rapid.OneOf(rapid.Int32Range(0, 9), rapid.Int32Range(0, 1<<28)).Draw(t, "share")
		}
		if rapid.IntRange(0, 9).Draw(t, "is there") > 0 || plain {
			r.Clusters = append(r.Clusters, c)
		}
	}
	if rapid.Bool().Draw(t, "has weights") {
		r.Policy.Weights = []WeightRule{{Matches: even, Weight: rapid.Int64Range(1, 9).Draw(t, "weight")}, {Weight: 2}}
	}
	if rapid.Bool().Draw(t, "has groups") {
		r.Policy.Groups = []Group{{Name: "even", Matches: even}, {Name: "all"}}
		r.Affinity = rapid.SampledFrom([]string{"", "even", "all"}).Draw(t, "affinity")
	}
	if plain {
		return r
	}
	if rapid.Bool().Draw(t, "spreads") {
		r.Policy.Spread = rapid.SampledFrom([][]Spread{
			{{By: ByCluster, Max: 2}}, {{By: ByCluster, Min: 2}}, {{By: ByRegion, Min: 1, Max: 1}, {By: ByCluster, Max: 3}}, {{By: ByZone, Min: 2}, {By: ByCluster}},
			{{By: ByLabel, Label: "tier", Min: 2}}, {{By: ByRegion, Min: 2}, {By: ByZone, Max: 2}, {By: ByCluster, Max: 4}},
		}).Draw(t, "spread")
	}
	r.InRelease = rapid.IntRange(0, 3).Draw(t, "in release") == 0
	r.Rebalance = rapid.IntRange(0, 3).Draw(t, "rebalance") == 0
	if rapid.Bool().Draw(t, "was decided") {
		r.Decided = ptr.To(rapid.SampledFrom([]int32{*r.Replicas, 7}).Draw(t, "for"))
	}
	return r
}

// Whatever is asked: no share is negative; all that is wanted is placed, or nothing is changed and a problem or the freeze says so; who is
// suspended keeps what he has; who leaves has nothing; no more is given than there is room for; there is a reason for every
// cluster; the order does not matter; and asked again, with what was decided, nothing changes.
func TestDivideProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, false)
		got := Divide(r)
		checkShares(t, &r, &got)
		backwards := r
		backwards.Clusters = slices.Clone(r.Clusters)
		slices.Reverse(backwards.Clusters)
		if other := Divide(backwards); !cmp.Equal(got, other, cmp.Comparer(sameMessage)) {
			t.Fatalf("the order matters:\n%s", cmp.Diff(got, other, cmp.Comparer(sameMessage)))
		}
		if got.Problem != nil || got.Frozen {
			return
		}
		again := r
		again.Current, again.Affinity, again.Rebalance, again.Decided = got.ByCluster(), got.Affinity, false, r.Replicas
		if settled := Divide(again); settled.Problem != nil || !cmp.Equal(settled.ByCluster(), got.ByCluster()) {
			t.Fatalf("a second look changes %v to %v, problem %v", got.ByCluster(), settled.ByCluster(), settled.Problem)
		}
	})
}

func sameMessage(a, b error) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Error() == b.Error())
}

func checkShares(t *rapid.T, r *Request, got *Result) {
	clusters := map[string]*Cluster{}
	for i := range r.Clusters {
		clusters[r.Clusters[i].Name] = &r.Clusters[i]
	}
	decisions, total, frozen, grown := map[string]Decision{}, int64(0), int64(0), false
	for _, d := range got.Decisions {
		if _, twice := decisions[d.Cluster]; twice || d.Reason == "" || clusters[d.Cluster] == nil {
			t.Fatalf("a decision that is there twice, or without a reason or a cluster: %+v", d)
		}
		decisions[d.Cluster] = d
	}
	if len(decisions) != len(clusters) {
		t.Fatalf("%d decisions for %d clusters", len(decisions), len(clusters))
	}
	for _, s := range got.Shares {
		c, d := clusters[s.Cluster], decisions[s.Cluster]
		before, held := r.Current[s.Cluster]
		if c == nil || c.Leaving || s.Replicas < 0 || !d.Selected || d.Replicas != s.Replicas {
			t.Fatalf("%+v of %+v, decided as %+v", s, c, d)
		}
		if !held && (c.Suspended || c.Disconnected != "" || len(c.Taints) > 0) {
			t.Fatalf("%+v is chosen anew", c)
		}
		if c.Suspended && s.Replicas != before {
			t.Fatalf("%s is suspended, had %d and has %d", s.Cluster, before, s.Replicas)
		}
		if c.Suspended {
			frozen += int64(s.Replicas)
		}
		grown = grown || s.Replicas > before
		total += int64(s.Replicas)
		if r.Policy.Strategy.LooksAtRoom() && c.Room >= 0 && int64(s.Replicas) > int64(before)+c.Room {
			t.Fatalf("%s has room for %d and gets %d more", s.Cluster, c.Room, s.Replicas-before)
		}
	}
	for name := range clusters {
		if decisions[name].Selected != slices.ContainsFunc(got.Shares, func(s Share) bool { return s.Cluster == name }) {
			t.Fatalf("%s is said to be selected and not to be", name)
		}
	}
	if got.Problem != nil || got.Frozen {
		still := maps.Clone(r.Current)
		maps.DeleteFunc(still, func(name string, _ int32) bool { return clusters[name] == nil || clusters[name].Leaving })
		if !maps.Equal(got.ByCluster(), still) {
			t.Fatalf("problem %v, frozen %v, and %v becomes %v", got.Problem, got.Frozen, still, got.ByCluster())
		}
		return
	}
	if want := max(int64(*r.Replicas), frozen); r.Policy.Strategy != Duplicated && total != want {
		t.Fatalf("%d replicas are placed, and %d wanted", total, want)
	}
}

// TestOneMoreTakesNone: one replica more takes none from any cluster, whatever the strategy; one fewer gives none to any. A shortage is
// one only where fewer fit than are wanted.
func TestOneMoreTakesNone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, true)
		first := Divide(r)
		var lacks *Shortage
		if errors.As(first.Problem, &lacks) {
			var fits int64
			for _, f := range lacks.Fits {
				fits += f.Replicas
			}
			if lacks.Missing <= 0 || fits != lacks.Wanted-lacks.Missing || lacks.Wanted != int64(*r.Replicas) {
				t.Fatalf("%+v", lacks)
			}
		}
		if first.Problem != nil {
			return
		}
		for _, by := range []int32{1, -1} {
			next := r
			next.Replicas, next.Current, next.Affinity = ptr.To(*r.Replicas+by), first.ByCluster(), first.Affinity
			if *next.Replicas < 0 {
				continue
			}
			second := Divide(next)
			if second.Problem != nil {
				continue
			}
			now := second.ByCluster()
			for name, before := range next.Current {
				if after, there := now[name]; (after-before)*by < 0 || !there {
					t.Fatalf("%s has %d of %d, and %d (there %v) of %d", name, before, *r.Replicas, after, there, *next.Replicas)
				}
			}
		}
	})
}

// TestSpreadProperty: what is selected keeps to the constraints, and where clusters alone are limited the room of the greatest is enough
// whenever it can be.
func TestSpreadProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t, false)
		r.InRelease = false
		for i := range r.Clusters {
			r.Clusters[i].Suspended = false // what is frozen counts, and nobody can move it
		}
		got := Divide(r)
		if got.Problem != nil || r.Policy.Strategy == StaticWeights {
			return
		}
		d := newDivider(&r)
		if err := d.divide(); err != nil {
			t.Fatal(err)
		}
		for i := range r.Policy.Spread {
			s, used := &r.Policy.Spread[i], map[string]bool{}
			for _, c := range d.all {
				if c.selected {
					for _, g := range s.groups(c.Cluster) {
						used[g] = true
					}
				}
			}
			if len(used) < s.Min || (s.Max > 0 && len(used) > s.Max) {
				t.Fatalf("%d groups by %s, of %d to %d", len(used), s.what(), s.Min, s.Max)
			}
		}
	})
}

func BenchmarkDivide1000Clusters100000Replicas(b *testing.B) {
	clusters := make([]Cluster, 1000)
	for i := range clusters {
		clusters[i] = Cluster{Name: fmt.Sprintf("cluster-%04d", i), Room: int64(200 + i%64), Region: fmt.Sprint("region", i%10)}
	}
	for _, strategy := range strategies {
		r := ask(strategy, 100_000, clusters)
		b.Run(string(strategy), func(b *testing.B) {
			for b.Loop() {
				Divide(r)
			}
		})
		r.Policy.Spread = []Spread{{By: ByRegion, Min: 5, Max: 8}, {By: ByCluster, Max: 700}}
		b.Run(string(strategy)+"Spread", func(b *testing.B) {
			for b.Loop() {
				Divide(r)
			}
		})
	}
}
