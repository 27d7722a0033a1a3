package schedule

import (
	"fmt"
	"math"
	"strings"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// hasAffinity refuses clusters that match none of the terms that a policy requires, unless they were chosen under it before,
// and ranks clusters by the terms that it prefers.
type hasAffinity struct {
	r         *Request
	required  []term // alternatives; none means every cluster
	preferred []preference
}

// term is what a cluster must have all of.
type term struct {
	labels     labels.Selector
	properties []comparison
}

// preference is what a cluster gains, or loses, by a term.
type preference struct {
	weight int32
	labels labels.Selector
	sorter *sorter // nil where a match alone gives the whole weight
}

// sorter divides a weight among clusters by a property.
type sorter struct {
	property
	descending  bool
	worst, best float64   // of the fleet
	values      []float64 // by position in the fleet; NaN for a cluster without the property
}

func newAffinity(r *Request) (*hasAffinity, error) {
	a := &hasAffinity{r: r}
	if r.Policy == nil || r.Policy.Affinity == nil || r.Policy.Affinity.ClusterAffinity == nil {
		return a, nil
	}
	affinity := r.Policy.Affinity.ClusterAffinity
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.ClusterSelectorTerms {
			t, err := newTerm(&required.ClusterSelectorTerms[i])
			if err != nil {
				return nil, &PolicyError{fmt.Sprintf("required term %d of the affinity: %v", i+1, err)}
			}
			a.required = append(a.required, t)
		}
	}
	for i := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		preferred := &affinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
		selector, err := selectorOf(preferred.Preference.LabelSelector)
		if err != nil {
			return nil, &PolicyError{fmt.Sprintf("preferred term %d of the affinity: %v", i+1, err)}
		}
		p := preference{weight: preferred.Weight, labels: selector}
		if s := preferred.Preference.PropertySorter; s != nil {
			p.sorter = &sorter{property: parseProperty(s.Name), descending: s.SortOrder == placementv1.Descending}
		}
		a.preferred = append(a.preferred, p)
	}
	return a, nil
}

// selectorOf reads a label selector; one that is absent is about nothing, so that every cluster matches.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, fmt.Errorf("its label selector is invalid: %w", err)
	}
	return selector, nil
}

func newTerm(from *placementv1.ClusterSelectorTerm) (term, error) {
	selector, err := selectorOf(from.LabelSelector)
	if err != nil {
		return term{}, err
	}
	t := term{labels: selector}
	if from.PropertySelector == nil {
		return t, nil
	}
	for _, e := range from.PropertySelector.MatchExpressions {
		if len(e.Values) != 1 {
			return term{}, fmt.Errorf("property %q is compared with %d values, and must be with one", e.Name, len(e.Values))
		}
		value, err := resource.ParseQuantity(e.Values[0])
		if err != nil {
			return term{}, fmt.Errorf("property %q is compared with %q, which is no quantity", e.Name, e.Values[0])
		}
		t.properties = append(t.properties, comparison{property: parseProperty(e.Name), operator: e.Operator, value: value})
	}
	return t, nil
}

func (t *term) matches(c *Cluster) bool {
	if !t.labels.Matches(labels.Set(c.Labels)) {
		return false
	}
	for i := range t.properties {
		if !t.properties[i].matches(c) {
			return false
		}
	}
	return true
}

// Allows tells whether a required term matches the cluster, or it was chosen under the same policy before.
func (a *hasAffinity) Allows(c *Cluster) bool { return a.matches(c) || a.r.keeps(c.Name) }

func (a *hasAffinity) matches(c *Cluster) bool {
	for i := range a.required {
		if a.required[i].matches(c) {
			return true
		}
	}
	return len(a.required) == 0
}

// Reason says what the cluster lacks of each term. Values of properties are not in it, since they change all the time.
func (a *hasAffinity) Reason(c *Cluster) string {
	lacks := make([]string, len(a.required))
	for i := range a.required {
		lacks[i] = a.required[i].lacks(c)
		if len(a.required) > 1 {
			lacks[i] = fmt.Sprintf("term %d: %s", i+1, lacks[i])
		}
	}
	return "cluster does not match the required cluster affinity: " + strings.Join(lacks, "; ")
}

// lacks says what a cluster that does not match the term lacks.
func (t *term) lacks(c *Cluster) string {
	var parts []string
	requirements, _ := t.labels.Requirements()
	for _, r := range requirements {
		if r.Matches(labels.Set(c.Labels)) {
			continue
		}
		have := "is not set"
		if value, found := c.Labels[r.Key()]; found {
			have = fmt.Sprintf("is %q", value)
		}
		parts = append(parts, fmt.Sprintf("label %s %s, and %q is required", r.Key(), have, r.String()))
	}
	for i := range t.properties {
		p := &t.properties[i]
		if p.matches(c) {
			continue
		}
		have := "is not"
		if _, found := p.of(c); !found {
			have = "is not reported, and has to be"
		} else if _, ok := p.quantity(c); !ok {
			have = "is no quantity, and has to be"
		}
		parts = append(parts, fmt.Sprintf("property %s %s %s", p.name, have, p.wants()))
	}
	return strings.Join(parts, ", ")
}

// wants says what is asked of the property.
func (p *comparison) wants() string {
	words := map[placementv1.PropertySelectorOperator]string{
		placementv1.PropertyGreaterThan: "greater than", placementv1.PropertyGreaterThanOrEqual: "at least", placementv1.PropertyEqual: "equal to",
		placementv1.PropertyNotEqual: "other than", placementv1.PropertyLessThan: "less than", placementv1.PropertyLessThanOrEqual: "at most",
	}
	return words[p.operator] + " " + p.value.String()
}

// Summary says that clusters do not match.
func (a *hasAffinity) Summary() (what, remedy string) {
	return "not matching the required cluster affinity", "label or join clusters that match it"
}

// measure reads what clusters are ranked by, and finds the best and the worst of the fleet.
func (a *hasAffinity) measure(fleet Fleet) {
	for i := range a.preferred {
		s := a.preferred[i].sorter
		if s == nil {
			continue
		}
		s.values = make([]float64, len(fleet.clusters))
		s.worst, s.best = math.Inf(1), math.Inf(-1)
		for j := range fleet.clusters {
			c := &fleet.clusters[j]
			q, ok := s.quantity(c)
			if !ok {
				s.values[j] = math.NaN()
				continue
			}
			s.values[j] = q.AsApproximateFloat64()
			if !c.Leaving {
				s.worst, s.best = min(s.worst, s.values[j]), max(s.best, s.values[j])
			}
		}
		if !s.descending {
			s.worst, s.best = s.best, s.worst
		}
	}
}

// score is the sum of what the preferred terms give the cluster at a position of the fleet.
func (a *hasAffinity) score(i int, c *Cluster) int32 {
	var sum int32
	for j := range a.preferred {
		p := &a.preferred[j]
		switch {
		case !p.labels.Matches(labels.Set(c.Labels)):
		case p.sorter == nil:
			sum += p.weight
		default:
			sum += int32(math.Round(float64(p.weight) * p.sorter.share(i)))
		}
	}
	return sum
}

// share is how good a cluster is, from 0, as the worst of the fleet, to 1, as the best; 0 where all are the same.
func (s *sorter) share(i int) float64 {
	if math.IsNaN(s.values[i]) || s.worst == s.best {
		return 0
	}
	return (s.values[i] - s.worst) / (s.best - s.worst)
}
