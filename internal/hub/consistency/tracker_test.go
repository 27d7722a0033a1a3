package consistency

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(uid, version string) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
}

func TestTracker(t *testing.T) {
	t.Parallel()
	var tracker Tracker

	if tracker.Behind(object("a", "5")) {
		t.Error("an object that was never written is not behind")
	}
	tracker.Wrote(object("a", "10"))
	tracker.Wrote(object("a", "9"))
	if !tracker.Behind(object("a", "9")) {
		t.Error("version 9 is behind our write of version 10; numbers, not texts, are compared")
	}
	if !tracker.Ours(object("a", "10")) || tracker.Ours(object("a", "11")) || tracker.Ours(object("b", "10")) {
		t.Error("version 10 of the object is ours, and no later one, and no other object's")
	}
	if tracker.Behind(object("b", "1")) {
		t.Error("another object is not behind")
	}
	if tracker.Behind(object("a", "10")) || tracker.Behind(object("a", "11")) {
		t.Error("our own write, or a later one, is not behind")
	}
	if len(tracker.written) != 0 {
		t.Errorf("what the cache has caught up with is forgotten, but %v is kept", tracker.written)
	}
	tracker.Wrote(object("a", "20"))
	tracker.Forget("a")
	if tracker.Behind(object("a", "11")) {
		t.Error("a forgotten object is not behind")
	}
}
