package placement

import (
	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	corev1 "k8s.io/api/core/v1"
)

// maxNote is how many bytes an event's note has at the most; the API refuses more than 1024.
const maxNote = 1000

// Note shortens an event's note to what the API takes.
func Note(text string) string { return Cut(text, maxNote) }

// RelatedCluster names a member in an event as the object that it is about, too. Events that differ in their notes alone are
// taken for one that came several times, and only the first note is kept: what is told of one cluster would be lost because
// the same was told of another.
func RelatedCluster(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "MemberCluster", Name: name}
}
