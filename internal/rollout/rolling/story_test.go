package rolling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// story is a placement to which things happen, and whose plans are carried out.
type story struct {
	*rapid.T
	config   *placementv1.RollingUpdateConfig
	latest   int
	now      time.Time
	bindings map[string]*placementv1.ClusterResourceBinding // by cluster
	// up are the clusters that counted as available when they were last reported on, whoever wrote their bindings since. ours are
	// those of them that we have written, until they are up again.
	up, ours map[string]bool
	log      strings.Builder
}

func (s *story) note(format string, args ...any) { fmt.Fprintf(&s.log, format+"\n", args...) }

func (s *story) clusters() []string { return slices.Sorted(maps.Keys(s.bindings)) }

// saidAvailable tells, without the planner's help, whether a cluster counts as available.
func (s *story) saidAvailable(b *placementv1.ClusterResourceBinding) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, placementv1.ConditionAvailable)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != b.Generation || b.DeletionTimestamp != nil || b.Spec.ResourceSnapshotName == "" {
		return false
	}
	if c.Reason != placementv1.ReasonNotAllWorkAreAvailabilityTrackable {
		return true
	}
	moved, _ := time.Parse(time.RFC3339, b.Annotations[placementv1.AnnotationUpdateStarted])
	period := time.Duration(*s.config.UnavailablePeriodSeconds) * time.Second
	return !s.now.Before(c.LastTransitionTime.Add(period)) && !s.now.Before(moved.Add(period))
}

// wanted counts the clusters that the placement wants; available, those that are up.
func (s *story) wanted() (wanted, available int) {
	for _, b := range s.bindings {
		if b.Spec.State != placementv1.BindingStateUnscheduled {
			wanted++
		}
		if s.up[b.Spec.TargetCluster] {
			available++
		}
	}
	return wanted, available
}

func (s *story) limit() int {
	wanted, _ := s.wanted()
	value := *s.config.MaxUnavailable
	number, err := intstr.GetScaledValueFromIntOrPercent(&value, wanted, true)
	if err != nil {
		s.Fatal(err)
	}
	return number
}

func (s *story) want(placementv1.BindingObject) Wanted {
	return Wanted{Snapshot: fmt.Sprint("v", s.latest)}
}

// act carries a plan out, all of it or as much as is written before the hub fails, and looks whether that was right.
func (s *story) act(most int) int {
	s.look(s.limit())
	in := Input{Config: s.config, Want: s.want, Now: s.now}
	for _, cluster := range s.clusters() {
		in.Bindings = append(in.Bindings, s.bindings[cluster])
	}
	plan := Make(in)
	took := false
	for i, step := range plan.Steps {
		if i == most {
			break
		}
		b := s.bindings[step.Cluster]
		was := s.up[step.Cluster]
		took = took || was
		delete(s.up, step.Cluster)
		s.note("%s %s: %s", step.Action, step.Cluster, step.Reason)
		if step.Action == Remove {
			b.DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
			continue
		}
		if was {
			s.ours[step.Cluster] = true
		}
		s.want(b).Give(b)
		b.Generation++
		b.Annotations[placementv1.AnnotationUpdateStarted] = s.now.Format(time.RFC3339)
	}
	for _, wait := range plan.Waits {
		if wait.Reason == "" {
			s.Fatalf("%s waits for no reason\n%s", wait.Cluster, s.log.String())
		}
	}
	wanted, available := s.wanted()
	limit := s.limit()
	if took && available < wanted-limit {
		s.Fatalf("%d of %d clusters are available after our writes, and at most %d may not be\n%s", available, wanted, limit, s.log.String())
	}
	s.look(limit)
	return len(plan.Steps)
}

func (s *story) look(limit int) {
	lost := 0
	for cluster, b := range s.bindings {
		if s.saidAvailable(b) {
			s.up[cluster] = true
		} else if b.DeletionTimestamp != nil {
			delete(s.up, cluster)
		}
	}
	for cluster := range s.ours {
		if b := s.bindings[cluster]; b == nil || s.up[cluster] || b.DeletionTimestamp != nil || b.Spec.State == placementv1.BindingStateUnscheduled {
			delete(s.ours, cluster)
		} else {
			lost++
		}
	}
	if wanted, _ := s.wanted(); lost > max(limit, 0) && wanted > 0 && !s.shrunk() {
		s.Fatalf("%d clusters are unavailable because of us, and at most %d may be\n%s", lost, limit, s.log.String())
	}
}

// shrunk tells whether the limit of the moment may be lower than when the clusters in flight were started: a percentage of
// fewer clusters is less.
func (s *story) shrunk() bool { return s.config.MaxUnavailable.Type == intstr.String }

// say is what the hub reports of a cluster.
func (s *story) say(cluster, how string) {
	b := s.bindings[cluster]
	if b == nil || b.Spec.ResourceSnapshotName == "" {
		return
	}
	s.note("%s is %s", cluster, how)
	delete(s.up, cluster)
	before := binding(cluster, b.Spec.ResourceSnapshotName, how).BindingStatus().Conditions
	for i := range before {
		before[i].ObservedGeneration, before[i].LastTransitionTime = b.Generation, metav1.NewTime(s.now)
	}
	b.Status.Conditions = before
}

func (s *story) choose(cluster string) {
	b := s.bindings[cluster]
	switch {
	case b == nil:
		b, _ = binding(cluster, "scheduled").(*placementv1.ClusterResourceBinding)
		s.bindings[cluster] = b
	case b.DeletionTimestamp != nil || b.Spec.State != placementv1.BindingStateUnscheduled:
		return
	case b.Spec.ResourceSnapshotName == "":
		b.Spec.State = placementv1.BindingStateScheduled
	default:
		b.Spec.State = placementv1.BindingStateBound
	}
	b.Generation++
	s.note("%s is chosen", cluster)
}

// event lets one thing happen.
func (s *story) event() {
	cluster := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(s.T, "cluster")
	b := s.bindings[cluster]
	switch rapid.IntRange(0, 12).Draw(s.T, "event") {
	case 0, 1:
		s.choose(cluster)
	case 2:
		if b != nil && b.DeletionTimestamp == nil {
			s.note("%s is given up", cluster)
			b.Spec.State = placementv1.BindingStateUnscheduled
			b.Generation++
		}
	case 3:
		if b != nil && b.DeletionTimestamp == nil {
			s.note("%s is evicted", cluster)
			b.DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
		}
	case 4:
		if b != nil && b.DeletionTimestamp != nil {
			delete(s.bindings, cluster)
		}
	case 5:
		if b != nil {
			s.note("the scheduler writes %s", cluster)
			b.Generation++
		}
	case 6:
		s.latest++
		s.note("v%d", s.latest)
	case 7:
		s.now = s.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(s.T, "seconds")) * time.Second)
	default:
		s.say(cluster, rapid.SampledFrom([]string{"available", "available", "untracked", "progressing", "applying", "failing"}).Draw(s.T, "health"))
	}
}

// heal lets everything come right, until there is nothing left to do.
func (s *story) heal() {
	for range 200 {
		for _, cluster := range s.clusters() {
			if s.bindings[cluster].DeletionTimestamp != nil {
				delete(s.bindings, cluster)
				continue
			}
			s.say(cluster, "available")
		}
		if s.act(-1) == 0 {
			break
		}
	}
	for _, cluster := range s.clusters() {
		b := s.bindings[cluster]
		if b.Spec.State != placementv1.BindingStateBound || b.Spec.ResourceSnapshotName != fmt.Sprint("v", s.latest) {
			s.Fatalf("%s is %s on %s, and nothing is done about it\n%s", cluster, b.Spec.State, b.Spec.ResourceSnapshotName, s.log.String())
		}
	}
}

// Whatever happens, what we write makes no more clusters unavailable than may be; and once all clusters are well, all that
// are wanted have what is newest, and no others have anything.
func TestStories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]string{"1", "2", "3", "25%", "50%", "100%"})
		s := &story{T: t, now: noon, bindings: map[string]*placementv1.ClusterResourceBinding{}, up: map[string]bool{}, ours: map[string]bool{},
			config: budget(limit.Draw(t, "maxUnavailable"), rapid.SampledFrom([]string{"0", "1", "25%"}).Draw(t, "maxSurge"))}
		for range rapid.IntRange(1, 80).Draw(t, "events") {
			s.event()
			if rapid.Bool().Draw(t, "the hub is up") {
				s.act(rapid.IntRange(-1, 3).Draw(t, "writes"))
			}
			s.look(s.limit())
		}
		s.heal()
	})
}
