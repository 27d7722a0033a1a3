// Package ledger keeps account of what clusters have been given and do not count among what is in use yet, so that two workloads never
// get the same free capacity. What a cluster reports to be free is right for the pods that run there at that time; those of a share that
// was decided a moment ago are not among them.
package ledger

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Ledger is ready for use as its zero value. Who decides on shares holds it locked from when it looks until it has put down what it
// decided.
type Ledger struct {
	sync.Mutex
	given map[string]map[types.UID]*entry // by the cluster, and the object
}

// Made is how many pods of an object a cluster has made, as it said at some time. Both times are by the cluster's clock.
type Made struct {
	Pods int32
	At   time.Time
}

// entry is what an object has in a cluster.
type entry struct {
	perReplica corev1.ResourceList
	share      int32
	made       Made
	// counted is how many of its pods are certainly in the cluster's report of what is free.
	counted int32
}

// Give puts down an object's share in a cluster, and what the cluster says that it has made of it. news tells that this is not what
// it said before, so that there may be room for others when the cluster reports next, or already.
func (l *Ledger) Give(object types.UID, cluster string, perReplica corev1.ResourceList, share int32, made Made) (news bool) {
	if l.given == nil {
		l.given = map[string]map[types.UID]*entry{}
	}
	if l.given[cluster] == nil {
		l.given[cluster] = map[types.UID]*entry{}
	}
	e := l.given[cluster][object]
	if e == nil {
		e = &entry{}
		l.given[cluster][object] = e
	}
	news = e.made != made || share < e.share
	e.perReplica, e.share, e.made = perReplica, share, made
	e.counted = min(e.counted, made.Pods) // what is made no more may be counted still, which errs on the safe side
	return news
}

// Forget drops what is put down for an object in clusters other than some.
func (l *Ledger) Forget(object types.UID, but func(cluster string) bool) {
	for cluster, entries := range l.given {
		if but == nil || !but(cluster) {
			delete(entries, object)
		}
		if len(entries) == 0 {
			delete(l.given, cluster)
		}
	}
}

// Free is what is free in a cluster by its report of some time, less what it was given and the report may not have: pods that were not
// made before. It is never less than nothing.
func (l *Ledger) Free(cluster string, available corev1.ResourceList, report time.Time) corev1.ResourceList {
	var free corev1.ResourceList
	for _, e := range l.given[cluster] {
		if report.After(e.made.At) {
			e.counted = e.made.Pods
		}
		missing := int64(e.share - e.counted)
		if missing <= 0 {
			continue
		}
		if free == nil {
			free = available.DeepCopy()
		}
		for name, quantity := range e.perReplica {
			if left, listed := free[name]; listed {
				quantity.Mul(missing)
				left.Sub(quantity)
				if left.Sign() < 0 {
					left = resource.Quantity{Format: left.Format}
				}
				free[name] = left
			}
		}
	}
	if free == nil {
		return available
	}
	return free
}
