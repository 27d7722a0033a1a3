package apply

import (
	"fmt"
	"slices"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// standing is what an object's owners mean for a Work that wants it.
type standing struct {
	// mine tells that the Work has the object already, if under an earlier AppliedWork of its name.
	mine bool
	// holder is another Work that has the object and claims it; sibling tells that it belongs to the same binding, so that
	// the object moves from one part of a snapshot to another as soon as the hub has written that part.
	holder  *view
	sibling bool
	// foreign are owners that are no AppliedWorks, or AppliedWorks of Works that nobody has any more.
	foreign *metav1.OwnerReference
}

// standingOf judges the owners of an object. An AppliedWork whose Work is gone, or lists the object no more, has no claim:
// the object is handed over in place.
func standingOf(owners []metav1.OwnerReference, key objectKey, self *view, all works) standing {
	var s standing
	for i := range owners {
		owner := &owners[i]
		switch holder := all[owner.Name]; {
		case !placement.IsAppliedWork(*owner):
			s.foreign = owner
		case owner.Name == self.name:
			s.mine = true
		case holder != nil && holder.wants(key):
			s.holder, s.sibling = holder, holder.binding == self.binding && self.binding != "" && holder.index != self.index
		}
	}
	return s
}

// fate is what becomes of an object that a Work gives up.
type fate int

const (
	fateForget  fate = iota // it is not ours, or has gone over to another Work
	fateRelease             // it stays, without our reference
	fateWait                // it is being deleted
	fateRemove
)

// fateOf decides what becomes of an object that was recorded for an AppliedWork which gives it up. A record is a status,
// which others can write, so it takes two to remove an object: the record, with the object's UID if it has one (the agent
// may have ended between making the object and writing that down), and the object, which names the AppliedWork as its owner.
// letGo tells that it did until this agent took the owner off, because somebody had deleted the AppliedWork.
func fateOf(live metav1.Object, record *placementv1.AppliedResourceMeta, owner *placementv1.AppliedWork, letGo bool) (fate, string) {
	isOurs := func(o metav1.OwnerReference) bool {
		return o.UID == owner.UID || (placement.IsAppliedWork(o) && o.Name == owner.Name)
	}
	owners := live.GetOwnerReferences()
	ours := slices.ContainsFunc(owners, isOurs)
	very := record.UID == live.GetUID()
	switch {
	case ours && (very || record.UID == ""):
	case ours: // with our reference on it, the garbage collector would remove it after us
		return fateRelease, "it is not the object that was placed, but was made anew by somebody in the member"
	case !very || slices.ContainsFunc(owners, placement.IsAppliedWork):
		return fateForget, ""
	case !letGo:
		return fateRelease, "it does not name AppliedWork " + owner.Name + " as its owner: somebody in the member took that off, or it was never placed"
	}
	for _, o := range owners {
		if !isOurs(o) {
			return fateRelease, fmt.Sprintf("%s %s owns it as well", o.Kind, o.Name)
		}
	}
	if live.GetDeletionTimestamp() != nil {
		return fateWait, ""
	}
	return fateRemove, ""
}

// without returns the owners but those with one of the UIDs, and those which an AppliedWork of the name left.
func without(owners []metav1.OwnerReference, name string, uid types.UID) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), func(o metav1.OwnerReference) bool {
		return o.UID == uid || (placement.IsAppliedWork(o) && o.Name == name)
	})
}
