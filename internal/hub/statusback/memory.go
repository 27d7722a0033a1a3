package statusback

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// reasonNotCopied is the reason of the event that says why a status is not copied.
	reasonNotCopied = "StatusNotReportedBack"
	actionCopy      = "ReportBack"
)

// memory is what is known of Works between passes. All of it can be lost: then objects are looked at once more, and what is refused
// is said again. Its zero value is ready for use.
type memory struct {
	mu    sync.Mutex
	works map[types.NamespacedName]*known
}

// known is what is known of one Work.
type known struct {
	placement placement.Key
	// copied are the statuses that are on the hub, by their marks, and the UIDs of the objects that have them.
	copied map[string]types.UID
	// said is why statuses are not copied, as it was told.
	said []string
	// doubtful tells that something of what the placement selects has changed since: one of the objects may be another by now.
	doubtful bool
}

// markOf stands for a status that a Work carries, and for the generation of the Work that it is of.
func markOf(w *placementv1.Work, m *placementv1.ManifestCondition) string {
	id, err := json.Marshal(m.Identifier)
	if err != nil {
		return "" // strings and a number, which can be encoded
	}
	sum := sha256.Sum256(fmt.Appendf(id, "\x00%s\x00%d\x00%d\x00%s", w.UID, w.Generation, m.BackReportedStatus.ObservedInMemberClusterGeneration, m.BackReportedStatus.ObservedStatus.Raw))
	return string(sum[:])
}

func (m *memory) forget(work types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, work)
}

// doubt takes note that something that a placement selects has changed, and returns the placement's Works.
func (m *memory) doubt(key placement.Key) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var works []types.NamespacedName
	for name, k := range m.works {
		if k.placement == key {
			k.doubtful = true
			works = append(works, name)
		}
	}
	return works
}

// of returns what is known of a Work. The lock is held.
func (m *memory) of(work types.NamespacedName) *known {
	if m.works == nil {
		m.works = map[types.NamespacedName]*known{}
	}
	if m.works[work] == nil {
		m.works[work] = &known{}
	}
	return m.works[work]
}

// marks are the statuses that are on the hub, as of one pass over a Work.
type marks struct {
	memory      *memory
	work        types.NamespacedName
	before, now map[string]types.UID
	doubtful    bool
}

func (m *memory) begin(from *origin) *marks {
	m.mu.Lock()
	defer m.mu.Unlock()
	work := client.ObjectKeyFromObject(from.work)
	k := m.of(work)
	k.placement = client.ObjectKeyFromObject(from.placement)
	marks := &marks{memory: m, work: work, before: k.copied, now: map[string]types.UID{}, doubtful: k.doubtful}
	k.doubtful = false
	return marks
}

// rely tells whether a status is certain to be on the hub.
func (k *marks) rely(mark string) bool {
	uid, copied := k.before[mark]
	if !copied || k.doubtful {
		return false
	}
	k.now[mark] = uid
	return true
}

func (k *marks) end() {
	k.memory.mu.Lock()
	defer k.memory.mu.Unlock()
	k.memory.of(k.work).copied = k.now
}

// tell records an event on the placement for each reason why statuses are not copied, once for as long as it holds, and tells
// whether there is any.
func (c *Controller) tell(from *origin, refused []string) bool {
	slices.Sort(refused)
	refused = slices.Compact(refused)
	key := client.ObjectKeyFromObject(from.work)
	c.memory.mu.Lock()
	k := c.memory.of(key)
	before := k.said
	k.said = refused
	c.memory.mu.Unlock()
	for _, why := range refused {
		if !slices.Contains(before, why) {
			cluster := from.binding.BindingSpec().TargetCluster
			c.Recorder.Eventf(from.placement, placement.RelatedCluster(cluster), corev1.EventTypeWarning, reasonNotCopied, actionCopy, "%s",
				placement.Note("Not copied from cluster "+cluster+": "+why))
		}
	}
	return len(refused) > 0
}
