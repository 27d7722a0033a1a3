package updaterun

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/schedule"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shownUnstaged is how many of the clusters without a stage are named.
const shownUnstaged = 10

// divide puts clusters into the stages of a strategy. Each must be in exactly one. The API refuses most of what is
// checked here already; a strategy that it let pass once is checked all the same.
func divide(run string, strategy *placementv1.UpdateStrategySpec, clusters []*schedule.Cluster) ([]placementv1.StageUpdatingStatus, error) {
	if len(strategy.Stages) == 0 {
		return nil, errors.New("it has no stages; add one")
	}
	stageOf := make(map[string]string, len(clusters))
	seen := map[string]bool{}
	stages := make([]placementv1.StageUpdatingStatus, 0, len(strategy.Stages))
	for i := range strategy.Stages {
		config := &strategy.Stages[i]
		if seen[config.Name] {
			return nil, fmt.Errorf("two stages are named %q; give each a name of its own", config.Name)
		}
		seen[config.Name] = true
		if err := checkTasks(config); err != nil {
			return nil, fmt.Errorf("stage %q: %w", config.Name, err)
		}
		members, err := membersOf(config, clusters)
		if err != nil {
			return nil, fmt.Errorf("stage %q: %w", config.Name, err)
		}
		for _, name := range members {
			if earlier, twice := stageOf[name]; twice {
				return nil, fmt.Errorf("cluster %q is in the stages %q and %q; change their label selectors so that each cluster is in one",
					name, earlier, config.Name)
			}
			stageOf[name] = config.Name
		}
		stage := newStage(config.Name, members)
		stage.BeforeStageTaskStatus = newTasks(run, config.Name, "before", config.BeforeStageTasks)
		stage.AfterStageTaskStatus = newTasks(run, config.Name, "after", config.AfterStageTasks)
		stages = append(stages, *stage)
	}
	return stages, unstaged(clusters, stageOf)
}

// unstaged complains of clusters that are in no stage.
func unstaged(clusters []*schedule.Cluster, stageOf map[string]string) error {
	var without []string
	for _, c := range clusters {
		if _, ok := stageOf[c.Name]; !ok {
			without = append(without, c.Name)
		}
	}
	if len(without) == 0 {
		return nil
	}
	slices.Sort(without)
	return fmt.Errorf("some clusters are not placed in any stage, total %d, showing up to %d: %s; add a stage whose label selector chooses them",
		len(without), shownUnstaged, strings.Join(without[:min(len(without), shownUnstaged)], ", "))
}

// membersOf returns the names of a stage's clusters in the order in which they are to be updated.
func membersOf(config *placementv1.StageConfig, clusters []*schedule.Cluster) ([]string, error) {
	selector, err := metav1.LabelSelectorAsSelector(config.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("its label selector is invalid: %w", err)
	}
	type position struct {
		name      string
		unordered bool
		order     int
	}
	var members []position
	for _, c := range clusters {
		if !selector.Matches(labels.Set(c.Labels)) {
			continue
		}
		p := position{name: c.Name, unordered: true}
		if config.SortingLabelKey != nil {
			if value, ok := c.Labels[*config.SortingLabelKey]; ok {
				if p.order, err = strconv.Atoi(value); err != nil {
					return nil, fmt.Errorf("label %s=%q of cluster %q is not an integer, so that the stage cannot be sorted by it; correct the label or remove it",
						*config.SortingLabelKey, value, c.Name)
				}
				p.unordered = false
			}
		}
		members = append(members, p)
	}
	slices.SortFunc(members, func(a, b position) int {
		switch {
		case a.unordered != b.unordered && b.unordered:
			return -1
		case a.unordered != b.unordered:
			return 1
		}
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.name)
	}
	return names, nil
}

// checkTasks checks a stage's gates.
func checkTasks(config *placementv1.StageConfig) error {
	if len(config.BeforeStageTasks) > 1 {
		return errors.New("beforeStageTasks can have at most one task")
	}
	for _, t := range config.BeforeStageTasks {
		if t.Type != placementv1.StageTaskTypeApproval {
			return fmt.Errorf("beforeStageTasks cannot have a task of type %s; only Approval is allowed there", t.Type)
		}
	}
	types := map[placementv1.StageTaskType]bool{}
	for _, t := range config.AfterStageTasks {
		if types[t.Type] {
			return fmt.Errorf("afterStageTasks cannot have two tasks of the same type: %s", t.Type)
		}
		types[t.Type] = true
		if t.Type == placementv1.StageTaskTypeTimedWait && (t.WaitTime == nil || t.WaitTime.Duration <= 0) {
			return errors.New("the TimedWait in afterStageTasks needs a waitTime of more than zero")
		}
	}
	return nil
}

// newStage makes the status of a stage that has not begun. Its list of clusters is never nil, so that it is printed.
func newStage(name string, clusters []string) *placementv1.StageUpdatingStatus {
	stage := &placementv1.StageUpdatingStatus{StageName: name, Clusters: make([]placementv1.ClusterUpdatingStatus, 0, len(clusters))}
	for _, c := range clusters {
		stage.Clusters = append(stage.Clusters, placementv1.ClusterUpdatingStatus{ClusterName: c})
	}
	if len(clusters) > 0 {
		stage.ClusterCounts = &placementv1.StageClusterCounts{Total: count(len(clusters))}
	}
	return stage
}

func newTasks(run, stage, when string, tasks []placementv1.StageTask) []placementv1.StageTaskStatus {
	var statuses []placementv1.StageTaskStatus
	for _, t := range tasks {
		s := placementv1.StageTaskStatus{Type: t.Type}
		if t.Type == placementv1.StageTaskTypeApproval {
			s.ApprovalRequestName = run + "-" + when + "-" + stage
		}
		statuses = append(statuses, s)
	}
	return statuses
}

// concurrency is how many clusters of a stage may be in flight at once.
func concurrency(limit *intstr.IntOrString, clusters int) int {
	if limit == nil {
		return 1
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(limit, clusters, false)
	if err != nil {
		return 1 // the API lets nothing pass that is neither; the default is the safest
	}
	return max(most, 1)
}

// count makes an API count of a length.
func count(n int) int32 {
	return int32(n) //nolint:gosec // a fleet has fewer than 2^31 clusters
}
