package schedule

import (
	"fmt"
	"testing"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fleetOf are n healthy clusters in ten regions, each with its own share of what is asked for below.
func fleetOf(n int) []Cluster {
	clusters := make([]Cluster, n)
	for i := range clusters {
		clusters[i] = cluster(fmt.Sprintf("cluster-%04d", i), fmt.Sprint("region=", i%10), fmt.Sprint("environment=", []string{"prod", "test"}[i%2]),
			fmt.Sprintf("cpu:%d", 1+i%64), fmt.Sprintf("kubernetes-fleet.io/node-count:%d", 1+i%30))
	}
	return clusters
}

const benchAffinity = `affinity:
  clusterAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      clusterSelectorTerms:
      - labelSelector: {matchLabels: {environment: prod}}
        propertySelector: {matchExpressions: [{name: resources.kubernetes-fleet.io/available-cpu, operator: Ge, values: ["4"]}]}
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 50, preference: {propertySorter: {name: kubernetes-fleet.io/node-count, sortOrder: Descending}}}
`

// One operation decides for one placement which of 1,000 clusters it is given; what is reported beside it is how many such
// decisions there are in a second.
func BenchmarkDecideOver1000Clusters(b *testing.B) {
	fleet := NewFleet(fleetOf(1000))
	for name, tc := range map[string]struct {
		policy string
		number int
	}{
		"PickAll":         {policy: "{}"},
		"PickAllAffinity": {policy: benchAffinity},
		"PickN":           {policy: "placementType: PickN\n" + benchAffinity, number: 10},
		"PickNSpread":     {policy: "placementType: PickN\ntopologySpreadConstraints: [{topologyKey: region}]\n" + benchAffinity, number: 10},
		"PickFixed":       {policy: "placementType: PickFixed\nclusterNames: [cluster-0001, cluster-0500, cluster-0999]"},
	} {
		r := ask(b, tc.policy, tc.number)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				result, err := Decide(r, fleet)
				if err != nil {
					b.Fatal(err)
				}
				if len(result.Listed()) == 0 {
					b.Fatal("nothing is decided")
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

func BenchmarkFleetOf3000(b *testing.B) {
	members := make([]*clusterv1.MemberCluster, 3000)
	for i := range members {
		members[i] = member("True", "True", "")
		members[i].Name, members[i].UID = fmt.Sprint("cluster-", i), types.UID(fmt.Sprint(i))
		members[i].Labels = map[string]string{"region": "east"}
		members[i].CreationTimestamp = metav1.Now()
	}
	b.ReportAllocs()
	for b.Loop() {
		clusters := make([]Cluster, 0, len(members))
		for _, m := range members {
			clusters = append(clusters, Observe(m))
		}
		NewFleet(clusters)
	}
}
