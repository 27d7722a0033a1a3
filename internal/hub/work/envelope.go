package work

import (
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
)

// refusedEntries says which entries of envelopes are in no Work, and why; empty where all are.
func refusedEntries(works []*placementv1.Work) string {
	var refused []string
	for _, w := range works {
		if text := w.Annotations[placementv1.AnnotationEnvelopeRefused]; text != "" {
			refused = append(refused, text)
		}
	}
	if len(refused) == 0 {
		return ""
	}
	return "Failed to synchronize the work to the latest: " + placement.Quote(strings.Join(refused, "; ")) + "; everything else is up to date"
}

// envelopeOf names the envelope whose data a Work carries; nil where it carries none.
func envelopeOf(w *placementv1.Work) *placementv1.EnvelopeIdentifier {
	name := w.Labels[placementv1.LabelEnvelopeName]
	if name == "" {
		return nil
	}
	return &placementv1.EnvelopeIdentifier{
		Name: name, Namespace: w.Labels[placementv1.LabelEnvelopeNamespace], Type: placementv1.EnvelopeType(w.Labels[placementv1.LabelEnvelopeType]),
	}
}
