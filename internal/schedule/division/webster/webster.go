// Package webster divides a number of replicas by weights after the method of Webster, also called Sainte-Laguë, of highest
// averages: one replica after the other goes to whom has the greatest weight/(2·seats+1). What it gives grows with the
// number: one replica more takes none from anybody.
package webster

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"math/bits"

	"k8s.io/apimachinery/pkg/types"
)

// Party is one that may be given seats.
type Party struct {
	// Name settles a tie that nothing else does. No two parties have the same.
	Name string
	// Weight is what it is worth against the others; nothing below 1 gets a seat. Any int64 will do, as long as all of them
	// together are one too.
	Weight int64
	// Seats is what it has already. It is given more as if it had won these by its weight.
	Seats int64
}

// Divide gives n more seats to parties, and returns how many each has then, in the order of parties. Of equal averages that
// of the party with fewer seats goes first, and then the name decides: in ascending order, or in descending if the FNV-32a
// hash of uid is odd, so that the odd seat of equal parties is not always the same one's, and stays where it is for one
// object. Where no party weighs anything nobody is given a seat; n below 1 gives none.
//
// It takes time for each party and not for each seat. All seats of an average above some λ are given before any other. So
// it looks for a low λ that does not give more than n, gives all of these at once, and only the rest, fewer than two for each
// party, one by one.
func Divide(n int64, parties []Party, uid types.UID) []int64 {
	seats := make([]int64, len(parties))
	var weight, held int64
	for i, p := range parties {
		seats[i] = max(p.Seats, 0)
		held += seats[i]
		weight += max(p.Weight, 0)
	}
	if n <= 0 || weight == 0 {
		return seats
	}
	goal := held + n
	low, high := int64(0), 2*goal+int64(len(parties))+2 // λ = weight/low does not give too much, weight/high does
	for high-low > 1 {
		middle := low + (high-low)/2
		if sum(parties, weight, middle) <= goal {
			low = middle
		} else {
			high = middle
		}
	}
	left := goal
	for i := range parties {
		seats[i] = atLeast(&parties[i], weight, low)
		left -= seats[i]
	}
	q := &queue{parties: parties, seats: seats, descending: Descending(uid)}
	for i := range parties {
		if parties[i].Weight > 0 {
			q.order = append(q.order, i)
		}
	}
	heap.Init(q)
	for ; left > 0; left-- {
		seats[q.order[0]]++
		heap.Fix(q, 0)
	}
	return seats
}

// Descending tells in which order names settle ties for an object.
func Descending(uid types.UID) bool {
	if uid == "" {
		return false
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	return h.Sum32()&1 == 1
}

// atLeast is how many seats a party has when all of averages of weight/part and above are given: those it had, or the
// greatest s with (2s-1)·weight <= own·part.
func atLeast(p *Party, weight, part int64) int64 {
	had := max(p.Seats, 0)
	if p.Weight <= 0 {
		return had
	}
	high, low := bits.Mul64(uint64(p.Weight), uint64(part)) //nolint:gosec // neither is negative
	low, carry := bits.Add64(low, uint64(weight), 0)        //nolint:gosec // not negative
	won, _ := bits.Div64(high+carry, low, 2*uint64(weight)) //nolint:gosec // not negative; own <= weight, so that the quotient fits
	return max(had, int64(won))                             //nolint:gosec // at most part
}

func sum(parties []Party, weight, part int64) int64 {
	var all int64
	for i := range parties {
		all += atLeast(&parties[i], weight, part)
	}
	return all
}

// queue has the party on top that is given the next seat.
type queue struct {
	parties    []Party
	seats      []int64
	order      []int
	descending bool
}

func (q *queue) Len() int      { return len(q.order) }
func (q *queue) Swap(i, j int) { q.order[i], q.order[j] = q.order[j], q.order[i] }
func (q *queue) Push(any)      {} // parties do not come
func (q *queue) Pop() any      { return nil }

func (q *queue) Less(i, j int) bool {
	a, b := q.order[i], q.order[j]
	if c := compareProducts(q.parties[b].Weight, 2*q.seats[a]+1, q.parties[a].Weight, 2*q.seats[b]+1); c != 0 {
		return c < 0
	}
	if q.seats[a] != q.seats[b] {
		return q.seats[a] < q.seats[b]
	}
	return (q.parties[a].Name < q.parties[b].Name) != q.descending
}

// compareProducts compares a·b with c·d, none of which is negative.
func compareProducts(a, b, c, d int64) int {
	h1, l1 := bits.Mul64(uint64(a), uint64(b)) //nolint:gosec // not negative
	h2, l2 := bits.Mul64(uint64(c), uint64(d)) //nolint:gosec // not negative
	return cmp.Or(cmp.Compare(h1, h2), cmp.Compare(l1, l2))
}
