package apply

import "k8s.io/apimachinery/pkg/runtime/schema"

// lastWave is that of all resources which have none of their own.
const lastWave = 6

// waves are the resources that have to be there before others, by the order in which they are applied. Those of one wave
// are applied at once; removal goes the other way.
var waves = []map[string][]string{
	{"": {"namespaces"}, "scheduling.k8s.io": {"priorityclasses"}},
	{
		"":                     {"resourcequotas", "limitranges", "serviceaccounts", "secrets", "configmaps", "persistentvolumes", "persistentvolumeclaims"},
		"networking.k8s.io":    {"networkpolicies", "ingressclasses"},
		"policy":               {"poddisruptionbudgets"},
		"storage.k8s.io":       {"storageclasses"},
		"apiextensions.k8s.io": {"customresourcedefinitions"},
	},
	{"rbac.authorization.k8s.io": {"clusterroles", "roles"}},
	{"rbac.authorization.k8s.io": {"clusterrolebindings", "rolebindings"}, "rollouts.kruise.io": {"rollouts"}},
	{
		"": {"services", "pods", "replicationcontrollers"}, "apps": {"daemonsets", "replicasets", "deployments", "statefulsets"},
		"autoscaling": {"horizontalpodautoscalers"}, "batch": {"jobs", "cronjobs"}, "networking.k8s.io": {"ingresses"},
	},
	{
		"apiregistration.k8s.io":       {"apiservices"},
		"admissionregistration.k8s.io": {"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
	},
}

var waveOfResource = func() map[schema.GroupResource]int {
	byResource := map[schema.GroupResource]int{}
	for wave, groups := range waves {
		for group, resources := range groups {
			for _, resource := range resources {
				byResource[schema.GroupResource{Group: group, Resource: resource}] = wave
			}
		}
	}
	return byResource
}()

// waveOf returns the wave in which a resource is applied.
func waveOf(resource schema.GroupResource) int {
	if wave, known := waveOfResource[resource]; known {
		return wave
	}
	return lastWave
}
