package division

// Stranded is what a cluster has of an object that is divided by room.
type Stranded struct {
	Cluster string
	// Given is its share, Ready how many of it are ready, Unschedulable how many have found no node for a while.
	Given, Ready, Unschedulable int32
}

// Deschedule lowers the shares of clusters by the replicas for which they have had no node for a while, though never below those that
// are ready, so that these can be placed elsewhere. It returns what the clusters are left with, and how many it took; none where there
// is nothing to take. A cluster that such replicas were taken from has room for no others.
func Deschedule(clusters []Stranded) (left map[string]int32, taken int32) {
	left = make(map[string]int32, len(clusters))
	for _, c := range clusters {
		keeps := c.Given
		if c.Ready < c.Given && c.Unschedulable > 0 {
			keeps = max(c.Given-c.Unschedulable, min(c.Ready, c.Given), 0)
		}
		left[c.Cluster] = keeps
		taken += c.Given - keeps
	}
	return left, taken
}
