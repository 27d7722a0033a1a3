package division

import (
	"cmp"
	"slices"
)

// Held is what a cluster has of an object's replicas at the moment.
type Held struct {
	Cluster string
	// Given is how many it has been given, Ready how many of them are ready. Of a cluster that is not heard of none is.
	Given, Ready int32
}

// unready are those that can go without being missed.
func (h *Held) unready() int64 { return int64(max(h.Given-h.Ready, 0)) }

// Next says how many replicas each cluster has now, on the way to the shares that were decided: what grows has its share at once,
// what shrinks, or goes altogether, gives away only as many as are ready elsewhere beyond what is wanted in all, after those that
// are not ready anyway. So the replicas that are ready never become fewer than are wanted, or than they are. settled tells that
// nothing is left to move. A cluster that is not in the answer has nothing, and no object, any more.
func Next(target map[string]int32, held []Held) (now map[string]int32, settled bool) {
	now = make(map[string]int32, len(target))
	var wanted, ready int64
	for cluster, share := range target {
		now[cluster] = share
		wanted += int64(share)
	}
	for i := range held {
		ready += int64(min(held[i].Ready, held[i].Given))
	}
	spare := max(ready-wanted, 0)
	settled = true
	// The cluster with the most to give goes first, so that moves are few.
	order := slices.SortedFunc(slices.Values(held), func(a, b Held) int {
		return cmp.Or(cmp.Compare(b.Given-target[b.Cluster], a.Given-target[a.Cluster]), cmp.Compare(a.Cluster, b.Cluster))
	})
	for i := range order {
		h := &order[i]
		share, stays := target[h.Cluster]
		surplus := int64(h.Given) - int64(share)
		if surplus <= 0 {
			continue
		}
		free := min(surplus, h.unready())
		give := min(surplus-free, spare)
		spare -= give
		left := surplus - free - give
		if left == 0 {
			if !stays {
				delete(now, h.Cluster)
			}
			continue
		}
		settled = false
		now[h.Cluster] = share + int32(left) //nolint:gosec // no more than it had
	}
	return now, settled
}
