package main

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
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
		ours := strings.HasSuffix(labels["group"], "kubernetes-fleet.io") || labels["resource"] == "events"
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
