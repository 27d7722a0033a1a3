package snapshot

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// abandonedAfter is how much older than the latest revision the last object of one without a master must be to count as
// abandoned. Until then another hub, from which this one took over, might still be about to make the master.
const abandonedAfter = time.Hour

// Group is one revision: a master snapshot and the further parts that share its index.
type Group struct {
	// Index counts the revisions of a placement from 0.
	Index int
	// Master is the name of the master; empty while, or after, there is none.
	Master string
	// Parts are the names of the other objects, sorted.
	Parts []string
	// Hash identifies the content, and Count is the number of objects that it is split into. Both are the master's word.
	Hash  string
	Count int
	// Latest are the names of those of its objects that are labelled as the latest.
	Latest []string
	// Available is a number that tells of revisions that were available in every selected cluster which was so last: the one
	// with the greatest, for which LastAvailable is set. 0 is for one that never was.
	Available     int
	LastAvailable bool
	// Created is when the last of its objects was made, by the API server's clock.
	Created time.Time
}

// Complete tells whether the revision can be used: all of its objects exist. The master is made last, so only a part
// that somebody deleted makes a revision with a master incomplete.
func (g *Group) Complete() bool { return g.Master != "" && g.Count == 1+len(g.Parts) }

// Groups sorts the snapshot objects of one placement into revisions, the oldest first. Objects without an index are left
// out.
func Groups[T metav1.Object](objects []T) []Group {
	byIndex := map[int]*Group{}
	for _, o := range objects {
		index, err := strconv.Atoi(o.GetLabels()[placementv1.LabelResourceIndex])
		if err != nil || index < 0 {
			continue
		}
		group := byIndex[index]
		if group == nil {
			group = &Group{Index: index}
			byIndex[index] = group
		}
		group.add(o)
	}
	groups := make([]Group, 0, len(byIndex))
	for _, group := range byIndex {
		slices.Sort(group.Parts)
		slices.Sort(group.Latest)
		groups = append(groups, *group)
	}
	slices.SortFunc(groups, func(a, b Group) int { return cmp.Compare(a.Index, b.Index) })
	if len(groups) > 0 {
		last := slices.MaxFunc(groups, func(a, b Group) int { return cmp.Compare(a.Available, b.Available) }).Index
		for i := range groups {
			groups[i].LastAvailable = groups[i].Index == last && groups[i].Available > 0
		}
	}
	return groups
}

func (g *Group) add(o metav1.Object) {
	if created := o.GetCreationTimestamp().Time; created.After(g.Created) {
		g.Created = created
	}
	if o.GetLabels()[placementv1.LabelIsLatestSnapshot] == "true" {
		g.Latest = append(g.Latest, o.GetName())
	}
	annotations := o.GetAnnotations()
	count, err := strconv.Atoi(annotations[placementv1.AnnotationSnapshotCount])
	if err != nil {
		g.Parts = append(g.Parts, o.GetName())
		return
	}
	g.Master, g.Count, g.Hash = o.GetName(), count, annotations[placementv1.AnnotationResourceHash]
	if g.Available, err = strconv.Atoi(annotations[placementv1.AnnotationAvailable]); err != nil {
		g.Available = 0 // it has none, or somebody has edited it
	}
}

// Latest returns the newest complete revision, or nil.
func Latest(groups []Group) *Group {
	for i := len(groups) - 1; i >= 0; i-- {
		if groups[i].Complete() {
			return &groups[i]
		}
	}
	return nil
}

// Next returns the index for a new revision: one more than any in groups or in use.
func Next(groups []Group, inUse ...int) int {
	highest := -1
	for i := range groups {
		highest = max(highest, groups[i].Index)
	}
	for _, index := range inUse {
		highest = max(highest, index)
	}
	return highest + 1
}

// Prune returns the revisions to delete so that at most limit remain, the oldest first. The latest stays, and so does one
// that is in use or was the last to be available everywhere, beyond the limit if need be. What a hub left half-made long
// before the latest goes as well, and does not count.
func Prune(groups []Group, limit int, inUse func(index int) bool) []Group {
	latest := Latest(groups)
	if latest == nil {
		return nil
	}
	var doomed []Group
	seen := 0
	for i := len(groups) - 1; i >= 0; i-- {
		g := groups[i]
		if g.Index > latest.Index { // being made
			continue
		}
		kept := latest.Created.Sub(g.Created) < abandonedAfter
		if g.Master != "" {
			seen++
			kept = seen <= limit || g.LastAvailable
		}
		if !kept && !inUse(g.Index) {
			doomed = append(doomed, g)
		}
	}
	slices.Reverse(doomed)
	return doomed
}
