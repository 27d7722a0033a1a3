package ledger

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func cpu(n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	var l Ledger
	free := func(want, available int64, report time.Time) {
		t.Helper()
		got := l.Free("east", cpu(available), report)
		if quantity := got[corev1.ResourceCPU]; quantity.Value() != want {
			t.Errorf("%s are free, want %d", quantity.String(), want)
		}
	}
	free(10, 10, at(0))
	l.Give("web", "east", cpu(2), 3, Made{})
	free(4, 10, at(0))
	free(0, 5, at(0))
	l.Give("web", "east", cpu(2), 3, Made{Pods: 2, At: at(1)})
	free(4, 10, at(1)) // of the same moment: they may not be in it
	free(4, 6, at(2))
	l.Give("web", "east", cpu(2), 3, Made{Pods: 3, At: at(3)})
	free(4, 4, at(4))
	l.Give("web", "east", cpu(2), 4, Made{Pods: 3, At: at(3)})
	free(2, 4, at(4))
	l.Give("web", "east", cpu(2), 1, Made{Pods: 1, At: at(5)})
	free(4, 4, at(4)) // what it gives back is free once it is reported to be
	l.Forget("web", func(cluster string) bool { return cluster == "east" })
	l.Give("web", "east", cpu(2), 2, Made{Pods: 1, At: at(5)})
	free(2, 4, at(4))
	l.Forget("web", nil)
	free(4, 4, at(4))
	if got := l.Free("west", cpu(7), at(4)); got.Cpu().Value() != 7 {
		t.Errorf("another cluster has %s", got.Cpu())
	}
}

// TestNeverTwice: whatever is given, made and reported in whatever order, no more is given than there is.
func TestNeverTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const capacity = 10
		var l Ledger
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		share, pods, told := map[types.UID]int32{}, map[types.UID]int32{}, map[types.UID]Made{}
		reported, at := int64(capacity), now
		objects := []types.UID{"a", "b", "c"}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			now = now.Add(time.Second)
			object := rapid.SampledFrom(objects).Draw(t, "object")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0: // somebody asks for more
				free := l.Free("east", cpu(reported), at)
				share[object] += int32(min(free.Cpu().Value(), int64(rapid.Int32Range(0, 5).Draw(t, "take")))) //nolint:gosec // at most 5
			case 1: // the cluster makes a pod
				if pods[object] < share[object] {
					pods[object]++
				}
			case 2: // it says how many it has made
				told[object] = Made{Pods: pods[object], At: now}
			case 3: // it says what is free
				reported, at = capacity, now
				for _, n := range pods {
					reported -= int64(n)
				}
			}
			for _, o := range objects {
				l.Give(o, "east", cpu(1), share[o], told[o])
			}
			total := int32(0)
			for _, n := range share {
				total += n
			}
			if total > capacity {
				t.Fatalf("%d were given, of %d: %v", total, capacity, share)
			}
		}
	})
}
