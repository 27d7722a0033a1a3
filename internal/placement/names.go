package placement

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MemberNamespace is the hub namespace of a cluster.
func MemberNamespace(cluster string) string { return placementv1.MemberNamespacePrefix + cluster }

// PolicySnapshotName names the policy snapshot with an index.
func PolicySnapshotName(placement string, index int) string {
	return fmt.Sprintf("%s-%d", placement, index)
}

// PolicySnapshotPlacement reads the placement's name back from the name of a policy snapshot; it is empty where that is none.
func PolicySnapshotPlacement(name string) string {
	dash := strings.LastIndexByte(name, '-')
	if dash < 0 {
		return ""
	}
	if index, err := strconv.Atoi(name[dash+1:]); err != nil || PolicySnapshotName(name[:dash], index) != name {
		return ""
	}
	return name[:dash]
}

// PolicyIndex is the index of a policy snapshot, as its label says; -1 for one without.
func PolicyIndex(s placementv1.PolicySnapshotObject) int {
	index, err := strconv.Atoi(s.GetLabels()[placementv1.LabelPolicyIndex])
	if err != nil {
		return -1
	}
	return index
}

// ResourceSnapshotName names the master object of the resource snapshot with an index.
func ResourceSnapshotName(placement string, index int) string {
	return fmt.Sprintf("%s-%d-snapshot", placement, index)
}

// ResourceSnapshotIndex reads the index back from the name of a placement's master resource snapshot.
func ResourceSnapshotIndex(placement, name string) (index int, ok bool) {
	digits, ok := strings.CutPrefix(name, placement+"-")
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, "-snapshot"); !ok {
		return 0, false
	}
	index, err := strconv.Atoi(digits)
	return index, err == nil && index >= 0 && ResourceSnapshotName(placement, index) == name
}

// ResourceSnapshotPartName names a further object of that snapshot; sub counts from 0.
func ResourceSnapshotPartName(placement string, index, sub int) string {
	return fmt.Sprintf("%s-%d-%d", placement, index, sub)
}

// BindingName names the binding of a placement to a cluster. It is the same for the same pair, so that a hub that
// crashed never makes a second one. Its last part alone tells clusters apart whose names begin alike: it has 40 bits.
func BindingName(k Key, cluster string) string {
	sum := sha256.Sum256([]byte(k.String() + "\x00" + cluster))
	return fmt.Sprintf("%s-%s-%s", truncate(k.Name, 26), truncate(cluster, 27), inName.EncodeToString(sum[:5]))
}

// inName writes bytes with characters that a name may have, five bits with each.
var inName = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// ObjectPlacementName names the internal placement of an object that a policy claims. It begins as the object's name does, and its
// end tells apart objects of other kinds, and those whose names begin alike: it has 40 bits.
func ObjectPlacementName(kind schema.GroupKind, namespace, name string) string {
	sum := sha256.Sum256([]byte(kind.String() + "\x00" + namespace + "\x00" + name))
	begin := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	begin = strings.TrimLeft(truncate(begin, 40), "-.")
	if begin == "" {
		begin = "object"
	}
	return begin + "-" + inName.EncodeToString(sum[:5])
}

// WorkName names the Work that carries one part of a snapshot: 0 is the master, part n has the subindex n-1.
func WorkName(k Key, part int) string {
	if part == 0 {
		return workName(k, "work")
	}
	return workName(k, strconv.Itoa(part-1))
}

// workName names a Work in a member's namespace, where those of both scopes are: what is before the end of the name is set off
// by a dash in one scope, by a dot in the other, so that a ClusterResourcePlacement shop.web and a ResourcePlacement web in
// namespace shop are not in each other's way.
func workName(k Key, end string) string {
	if k.Namespace != "" {
		return k.Namespace + "." + k.Name + "." + end
	}
	return k.Name + "-" + end
}

// EnvelopeID is what the name of the Work ends with that carries an envelope's data.
func EnvelopeID(kind, namespace, name string) string {
	sum := sha256.Sum256([]byte(kind + "\x00" + namespace + "\x00" + name))
	return hex.EncodeToString(sum[:8])
}

// EnvelopeWorkName names the Work that carries the data of the envelope with an ID.
func EnvelopeWorkName(k Key, id string) string {
	return workName(k, "envelope-"+id)
}

// truncate cuts s to n bytes, and then cuts off what a name may not end with.
func truncate(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	for len(s) > 0 && (s[len(s)-1] == '-' || s[len(s)-1] == '.') {
		s = s[:len(s)-1]
	}
	return s
}
