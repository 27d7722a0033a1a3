package webster

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

const (
	// The hash of one is even, of the other odd.
	even = types.UID("uid-2")
	odd  = types.UID("uid-1")
)

func parties(weights ...int64) []Party {
	all := make([]Party, len(weights))
	for i, w := range weights {
		all[i] = Party{Name: fmt.Sprintf("member%d", i+1), Weight: w}
	}
	return all
}

func TestDivide(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		n       int64
		weights []int64
		held    []int64
		uid     types.UID
		want    []int64
	}{
		"equal":                      {n: 8, weights: []int64{10, 10}, want: []int64{4, 4}},
		"nearly equal":               {n: 8, weights: []int64{10, 12}, want: []int64{4, 4}},
		"less equal":                 {n: 8, weights: []int64{10, 14}, want: []int64{3, 5}},
		"one to three":               {n: 8, weights: []int64{6, 18}, want: []int64{2, 6}},
		"odd, ascending":             {n: 7, weights: []int64{10, 10}, uid: even, want: []int64{4, 3}},
		"odd, descending":            {n: 7, weights: []int64{10, 10}, uid: odd, want: []int64{3, 4}},
		"odd, no UID":                {n: 7, weights: []int64{10, 10}, want: []int64{4, 3}},
		"one to two":                 {n: 9, weights: []int64{1, 2}, want: []int64{3, 6}},
		"nine, one to three":         {n: 9, weights: []int64{1, 3}, want: []int64{2, 7}},
		"three":                      {n: 12, weights: []int64{6, 12, 18}, want: []int64{2, 4, 6}},
		"percents":                   {n: 10, weights: []int64{50, 30, 20}, want: []int64{5, 3, 2}},
		"one, ascending":             {n: 1, weights: []int64{1, 1}, uid: even, want: []int64{1, 0}},
		"one, descending":            {n: 1, weights: []int64{1, 1}, uid: odd, want: []int64{0, 1}},
		"a tie goes to fewer seats":  {n: 1, weights: []int64{3, 1}, held: []int64{1, 0}, want: []int64{1, 1}},
		"eight becomes five":         {n: 5, weights: []int64{5, 3}, want: []int64{3, 2}},
		"eight becomes two":          {n: 2, weights: []int64{7, 1}, want: []int64{2, 0}},
		"none":                       {n: 0, weights: []int64{4, 4}, want: []int64{0, 0}},
		"fewer than none":            {n: -3, weights: []int64{4, 4}, want: []int64{0, 0}},
		"nobody weighs anything":     {n: 3, weights: []int64{0, -1}, want: []int64{0, 0}},
		"a party without weight":     {n: 3, weights: []int64{0, 1}, want: []int64{0, 3}},
		"nobody":                     {n: 3, want: []int64{}},
		"has more than its weight":   {n: 4, weights: []int64{1, 1}, held: []int64{5, 0}, want: []int64{5, 4}},
		"the most there can be":      {n: math.MaxInt32, weights: []int64{math.MaxInt32, 1 << 31, 1}, want: []int64{1073741823, 1073741824, 0}},
		"weights of 62 bits":         {n: 10, weights: []int64{1 << 61, 1 << 61}, want: []int64{5, 5}},
		"what is held goes on alone": {n: 2, weights: []int64{0, 7}, held: []int64{3, 1}, want: []int64{3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := parties(tc.weights...)
			for i, held := range tc.held {
				all[i].Seats = held
			}
			if got := Divide(tc.n, all, tc.uid); !slices.Equal(got, tc.want) {
				t.Errorf("%d by %v from %v are %v, want %v", tc.n, tc.weights, tc.held, got, tc.want)
			}
		})
	}
}

func TestDescending(t *testing.T) {
	t.Parallel()
	if Descending(even) || !Descending(odd) || Descending("") {
		t.Errorf("%s descends %v, %s %v, no UID %v", even, Descending(even), odd, Descending(odd), Descending(""))
	}
}

// oneByOne is the method as its definition says it, on real fractions: small numbers are exact.
func oneByOne(n int64, parties []Party, uid types.UID) []int64 {
	seats := make([]int64, len(parties))
	for i, p := range parties {
		seats[i] = p.Seats
	}
	for range n {
		best := -1
		for i, p := range parties {
			if p.Weight <= 0 {
				continue
			}
			if best < 0 {
				best = i
				continue
			}
			mine, theirs := p.Weight*(2*seats[best]+1), parties[best].Weight*(2*seats[i]+1)
			first := p.Name < parties[best].Name
			if Descending(uid) {
				first = p.Name > parties[best].Name
			}
			if mine > theirs || (mine == theirs && (seats[i] < seats[best] || (seats[i] == seats[best] && first))) {
				best = i
			}
		}
		if best >= 0 {
			seats[best]++
		}
	}
	return seats
}

func drawParties(t *rapid.T, weight *rapid.Generator[int64], held int64) []Party {
	all := parties(rapid.SliceOfN(weight, 1, 12).Draw(t, "weights")...)
	for i := range all {
		all[i].Seats = rapid.Int64Range(0, held).Draw(t, "held")
	}
	return rapid.Permutation(all).Draw(t, "order")
}

// The quick way gives what the definition gives.
func TestDivideIsOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SampledFrom([]*rapid.Generator[int64]{rapid.Int64Range(0, 5), rapid.Int64Range(0, 1000), rapid.Int64Range(0, math.MaxInt32)}).Draw(t, "kind")
		all := drawParties(t, weights, rapid.SampledFrom([]int64{0, 3, 300}).Draw(t, "most held"))
		n := rapid.Int64Range(0, 2000).Draw(t, "n")
		uid := types.UID(rapid.SampledFrom([]string{"", string(even), string(odd)}).Draw(t, "uid"))
		if got, want := Divide(n, all, uid), oneByOne(n, all, uid); !slices.Equal(got, want) {
			t.Fatalf("%d by %v are %v, want %v", n, all, got, want)
		}
	})
}

// Whatever the size: all seats are given, nobody loses, one more takes none from anybody, the order does not matter, and who
// weighs more has no fewer.
func TestDivideProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := drawParties(t, rapid.Int64Range(0, 1<<31), rapid.SampledFrom([]int64{0, math.MaxInt32}).Draw(t, "most held"))
		n := rapid.Int64Range(0, math.MaxInt32).Draw(t, "n")
		uid := types.UID(rapid.StringN(0, 8, 8).Draw(t, "uid"))
		got, more := Divide(n, all, uid), Divide(n+1, all, uid)
		var sum, held, weight int64
		for i, p := range all {
			sum, held, weight = sum+got[i], held+p.Seats, weight+p.Weight
			if got[i] < p.Seats || more[i] < got[i] || (p.Weight == 0 && got[i] != p.Seats) {
				t.Fatalf("%s had %d, has %d, and %d with one more", p.Name, p.Seats, got[i], more[i])
			}
			for j, other := range all {
				if p.Seats == 0 && other.Seats == 0 && p.Weight > other.Weight && got[i] < got[j] {
					t.Fatalf("%s weighs more than %s and has less: %v", p.Name, other.Name, got)
				}
			}
		}
		if weight > 0 && sum != held+n {
			t.Fatalf("%d seats of %d", sum, held+n)
		}
		backwards := slices.Clone(all)
		slices.Reverse(backwards)
		reversed := Divide(n, backwards, uid)
		slices.Reverse(reversed)
		if !slices.Equal(reversed, got) {
			t.Fatalf("the order matters: %v and %v", got, reversed)
		}
	})
}

// A number that is no more than all weights together gives nobody more than its weight: what is divided by capacity fits.
func TestDivideKeepsToWeights(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := drawParties(t, rapid.Int64Range(0, 1<<31), 0)
		var weight int64
		for _, p := range all {
			weight += p.Weight
		}
		for i, s := range Divide(rapid.Int64Range(0, weight).Draw(t, "n"), all, even) {
			if s > all[i].Weight {
				t.Fatalf("%d seats for a weight of %d", s, all[i].Weight)
			}
		}
	})
}

func BenchmarkDivide1000Clusters100000Replicas(b *testing.B) {
	all := make([]Party, 1000)
	for i := range all {
		all[i] = Party{Name: fmt.Sprintf("cluster-%04d", i), Weight: int64(1 + i%64)}
	}
	for b.Loop() {
		Divide(100_000, all, odd)
	}
}
