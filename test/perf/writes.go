package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// writeCounter counts the writes that the hub's API server served for our kinds and for events, from its own metrics.
// Leases are left out.
type writeCounter struct{ client kubernetes.Interface }

func newWriteCounter(config *rest.Config) (*writeCounter, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the hub's metrics: %w", err)
	}
	return &writeCounter{client: c}, nil
}

// writeCounts are writes by verb and resource, such as "PUT works/status".
type writeCounts map[string]int

func (w *writeCounter) read(ctx context.Context) (writeCounts, error) {
	raw, err := w.client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the hub's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("understand the hub's metrics: %w", err)
	}
	counts := writeCounts{}
	for _, m := range families["apiserver_request_total"].GetMetric() {
		labels := labelsOf(m)
		ours := strings.HasSuffix(labels["group"], "kubernetes-fleet.io") || labels["resource"] == "events" ||
			labels["group"] == policyv1alpha1.GroupVersion.Group || labels["subresource"] == "status"
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "DELETE", "APPLY", "DELETECOLLECTION":
		default:
			continue
		}
		if !ours {
			continue
		}
		resource := labels["resource"]
		if labels["subresource"] != "" {
			resource += "/" + labels["subresource"]
		}
		counts[labels["verb"]+" "+resource] += int(m.GetCounter().GetValue())
	}
	return counts, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// since returns what was written after before.
func (counts writeCounts) since(before writeCounts) writeCounts {
	diff := writeCounts{}
	for what, n := range counts {
		if n > before[what] {
			diff[what] = n - before[what]
		}
	}
	return diff
}

func (counts writeCounts) total() int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

func (counts writeCounts) String() string {
	parts := make([]string, 0, len(counts))
	for what, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}

// writers are who writes what, as each resource has one writer; the API server's metrics do not tell.
var writers = map[string]string{
	"clusterresourcebindings":          "hub/updaterun, hub/rolling, hub/scheduler",
	"clusterresourcebindings/status":   "hub/work",
	"works":                            "hub/work",
	"works/status":                     "agents",
	"clusterstagedupdateruns":          "the user creates it; hub/updaterun",
	"clusterstagedupdateruns/status":   "hub/updaterun",
	"clusterresourceplacements/status": "hub/placement",
	"clusterresourcesnapshots":         "hub/snapshots",
}

// breakdown lists the writes of several rounds: for each kind the median and the range, those written most first.
func breakdown(rounds []writeCounts) []string {
	kinds := map[string]bool{}
	for _, r := range rounds {
		for what := range r {
			kinds[what] = true
		}
	}
	of := func(what string) []int {
		var numbers []int
		for _, r := range rounds {
			numbers = append(numbers, r[what])
		}
		slices.Sort(numbers)
		return numbers
	}
	order := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		if x, y := median(of(a)), median(of(b)); x != y {
			return y - x
		}
		return strings.Compare(a, b)
	})
	var lines []string
	for _, what := range order {
		numbers := of(what)
		verb, resource, _ := strings.Cut(what, " ")
		lines = append(lines, fmt.Sprintf("%d\t%d to %d\t%s\t%s\t%s", median(numbers), numbers[0], numbers[len(numbers)-1], verb, resource, writers[resource]))
	}
	return lines
}

// told lists the events since a time by what they are about, with how often each was recorded.
func (w *writeCounter) told(ctx context.Context, since time.Time) (string, error) {
	list, err := w.client.EventsV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list the hub's events: %w", err)
	}
	counts := writeCounts{}
	for i := range list.Items {
		if e := &list.Items[i]; !e.EventTime.Time.Before(since) {
			counts[e.Regarding.Kind+" "+e.Reason]++
		}
	}
	return counts.String(), nil
}
