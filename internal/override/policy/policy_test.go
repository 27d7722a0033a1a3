package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
	"github.com/fleetwright/fleetwright/internal/override/policy"
	"github.com/fleetwright/fleetwright/internal/schedule/clusteraffinity"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","labels":{"app":"web","tier":"front"}},
"spec":{"replicas":3,"template":{"spec":{"initContainers":[{"name":"init","image":"busybox","command":["sh"]}],
"containers":[{"name":"app","image":"registry.example.com:5000/team/web:1.2","command":["/web"],"args":["--a","--b","--a"]}]}}}}`

// with is an object with some text in place of another.
func with(raw string, oldNew ...string) string { return strings.NewReplacer(oldNew...).Replace(raw) }

// overriders reads overriders as they are written in a policy.
func overriders(t *testing.T, text string) policyv1alpha1.Overriders {
	t.Helper()
	var o policyv1alpha1.Overriders
	if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func one(o policyv1alpha1.Overriders) policy.Policy {
	return policy.Policy{Kind: policy.Namespaced, Namespace: "shop", Name: "p", UID: "u", Generation: 1,
		Spec: &policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: o}}}}
}

func apply(t *testing.T, raw string, policies ...policy.Policy) (string, error) {
	t.Helper()
	o, err := policy.Look([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := clusteraffinity.Locate("east", map[string]string{"env": "prod"})
	set := policy.Match(policies, []policy.Object{o}, &c)
	if set.Empty() {
		return raw, nil
	}
	changed, err := set.Apply([]byte(raw))
	return string(changed), err
}

func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if json.Unmarshal([]byte(got), &g) != nil || json.Unmarshal([]byte(want), &w) != nil {
		t.Fatalf("not JSON: %s or %s", got, want)
	}
	g1, _ := json.Marshal(g)
	w1, _ := json.Marshal(w)
	if string(g1) != string(w1) {
		t.Errorf("got  %s\nwant %s", g1, w1)
	}
}

func TestOverriders(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	configMap := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop"},"data":{"a.json":"{\"log\":{\"level\":\"info\"},\"big\":9007199254740993}","a.yaml":"log:\n  level: info\n","two.yaml":"a: 1\n---\nb: 2\n"}}`
	pinned := with(deployment, "team/web:1.2", "team/web@"+digest)
	for name, tc := range map[string]struct {
		object, overriders, want string
		err                      string // a part of the error; the object then is as it was
	}{
		"registry of all":       {deployment, `imageOverrider: [{component: Registry, operator: replace, value: mirror.example.com}]`, with(deployment, "registry.example.com:5000/team", "mirror.example.com/team", `"busybox"`, `"mirror.example.com/busybox"`), ""},
		"registry with a path":  {deployment, `imageOverrider: [{component: Registry, operator: replace, value: mirror.example.com/hub}]`, with(deployment, "registry.example.com:5000/team", "mirror.example.com/hub/team", `"busybox"`, `"mirror.example.com/hub/busybox"`), ""},
		"registry removed":      {deployment, `imageOverrider: [{component: Registry, operator: remove}]`, with(deployment, "registry.example.com:5000/team", "team"), ""},
		"repository added to":   {deployment, `imageOverrider: [{component: Repository, operator: add, value: -slim}]`, with(deployment, "team/web:", "team/web-slim:", `"busybox"`, `"busybox-slim"`), ""},
		"tag replaced":          {deployment, `imageOverrider: [{component: Tag, operator: replace, value: "2.0", predicate: {path: /spec/template/spec/containers/0/image}}]`, with(deployment, "web:1.2", "web:2.0"), ""},
		"tag added to":          {deployment, `imageOverrider: [{component: Tag, operator: add, value: -arm64, predicate: {path: /spec/template/spec/containers/0/image}}]`, with(deployment, "web:1.2", "web:1.2-arm64"), ""},
		"tag removed":           {deployment, `imageOverrider: [{component: Tag, operator: remove}]`, with(deployment, "web:1.2", "web"), ""},
		"tag becomes a digest":  {deployment, `imageOverrider: [{component: Tag, operator: replace, value: "@` + digest + `", predicate: {path: /spec/template/spec/containers/0/image}}]`, pinned, ""},
		"digest becomes a tag":  {pinned, `imageOverrider: [{component: Tag, operator: replace, value: "1.2", predicate: {path: /spec/template/spec/containers/0/image}}]`, deployment, ""},
		"digest keeps registry": {pinned, `imageOverrider: [{component: Registry, operator: replace, value: "[::1]:5000"}]`, with(pinned, "registry.example.com:5000", "[::1]:5000", `"busybox"`, `"[::1]:5000/busybox"`), ""},
		"added to a digest":     {pinned, `imageOverrider: [{component: Tag, operator: add, value: x}]`, "", "the image has a digest"},
		"no repository":         {deployment, `imageOverrider: [{component: Repository, operator: remove}]`, "", "cannot be without a repository"},
		"no image":              {deployment, `imageOverrider: [{component: Repository, operator: replace, value: "Big Name"}]`, "", "no image's name"},
		"no host":               {deployment, `imageOverrider: [{component: Registry, operator: replace, value: mirror}]`, "", "no registry"},
		"image value missing":   {deployment, `imageOverrider: [{component: Tag, operator: replace}]`, "", "value is needed to replace"},
		"image value too much":  {deployment, `imageOverrider: [{component: Tag, operator: remove, value: x}]`, "", "value is given to remove"},
		"predicate of nothing":  {deployment, `imageOverrider: [{component: Tag, operator: remove, predicate: {path: /spec/image}}]`, "", `path "/spec/image": the object has no such field`},
		"predicate of a number": {deployment, `imageOverrider: [{component: Tag, operator: remove, predicate: {path: /spec/replicas}}]`, "", "there is no text"},
		"images of a ConfigMap": {configMap, `imageOverrider: [{component: Tag, operator: remove}]`, configMap, ""},
		"command of init":       {deployment, `commandOverrider: [{containerName: init, operator: add, value: [-c, x]}]`, with(deployment, `["sh"]`, `["sh","-c","x"]`), ""},
		"args taken away":       {deployment, `argsOverrider: [{containerName: app, operator: remove, value: [--a]}]`, with(deployment, `["--a","--b","--a"]`, `["--b"]`), ""},
		"args added to none":    {deployment, `argsOverrider: [{containerName: init, operator: add, value: [--x]}]`, with(deployment, `"command":["sh"]`, `"command":["sh"],"args":["--x"]`), ""},
		"another container":     {deployment, `argsOverrider: [{containerName: other, operator: add, value: [--x]}]`, deployment, ""},
		"args of nothing":       {deployment, `argsOverrider: [{containerName: app, operator: add}]`, "", "argsOverrider[0], for Deployment shop/web in cluster \"east\": value is needed"},
		"labels":                {deployment, `labelsOverrider: [{operator: add, value: {zone: a}}, {operator: replace, value: {tier: back, none: x}}, {operator: remove, value: {app: ""}}]`, with(deployment, `"app":"web",`, "", `"tier":"front"`, `"tier":"back","zone":"a"`), ""},
		"no label":              {deployment, `labelsOverrider: [{operator: add, value: {"a b": x}}]`, "", "none of labels"},
		"annotations":           {deployment, `annotationsOverrider: [{operator: add, value: {note: "any text!"}}]`, with(deployment, `"namespace":"shop",`, `"namespace":"shop","annotations":{"note":"any text!"},`), ""},
		"labels of nothing":     {deployment, `labelsOverrider: [{operator: remove}]`, "", "value is needed"},
		"JSON in a text":        {configMap, `fieldOverrider: [{fieldPath: /data/a.json, json: [{subPath: /log/level, operator: replace, value: debug}]}]`, with(configMap, `\"level\":\"info\"`, `\"level\":\"debug\"`), ""},
		"YAML in a text":        {configMap, `fieldOverrider: [{fieldPath: /data/a.yaml, yaml: [{subPath: /log/level, operator: replace, value: debug}, {subPath: /more, operator: add, value: [1]}]}]`, with(configMap, `"log:\n  level: info\n"`, `"log:\n  level: debug\nmore:\n- 1\n"`), ""},
		"two documents":         {configMap, `fieldOverrider: [{fieldPath: /data/two.yaml, yaml: [{subPath: /a, operator: remove}]}]`, "", "more than one YAML document"},
		"not JSON":              {configMap, `fieldOverrider: [{fieldPath: /data/a.yaml, json: [{subPath: /a, operator: remove}]}]`, "", "the text is not JSON"},
		"no such subPath":       {configMap, `fieldOverrider: [{fieldPath: /data/a.json, json: [{subPath: /nothing, operator: remove}]}]`, "", `json[0], subPath "/nothing": there is nothing to remove`},
		"no text":               {deployment, `fieldOverrider: [{fieldPath: /spec/replicas, json: [{subPath: /a, operator: remove}]}]`, "", "what is there is no text"},
		"neither":               {configMap, `fieldOverrider: [{fieldPath: /data/a.json}]`, "", "give either json or yaml"},
		"plaintext":             {deployment, `plaintext: [{path: /spec/replicas, operator: replace, value: 5}, {path: /spec/paused, operator: add, value: true}]`, with(deployment, `"replicas":3`, `"replicas":5,"paused":true`), ""},
		"plaintext removes":     {deployment, `plaintext: [{path: /metadata/labels/app, operator: remove}]`, with(deployment, `"app":"web",`, ""), ""},
		"remove with a value":   {deployment, `plaintext: [{path: /spec/replicas, operator: remove, value: 3}]`, "", "value is given to remove"},
		"add without a value":   {deployment, `plaintext: [{path: /spec/x, operator: add}]`, "", "value is needed to add"},
		"another name":          {deployment, `plaintext: [{path: /metadata, operator: replace, value: {name: other, namespace: shop}}]`, "", "of the metadata"},
		"another kind":          {deployment, `plaintext: [{path: /kind, operator: replace, value: Secret}]`, "", "cannot change kind"},
		"no kind":               {deployment, `plaintext: [{path: /apiVersion, operator: remove}]`, "", "cannot change apiVersion"},
		"name by image":         {with(deployment, `"name":"web"`, `"name":"web:1"`), `imageOverrider: [{component: Tag, operator: remove, predicate: {path: /metadata/name}}]`, "", "of the metadata"},
		"kind in disguise":      {deployment, `plaintext: [{path: /Kind, operator: add, value: Secret}]`, "", "an object has no such field, but kind"},
		"status":                {deployment, `plaintext: [{path: /status, operator: add, value: {}}]`, "", "cannot change the status"},
		"labels that are none":  {deployment, `plaintext: [{path: /metadata/labels, operator: replace, value: [1]}]`, "", "labels are keys with texts"},
		"names all":             {deployment, `plaintext: [{path: /spec/replicas, operator: replace, value: 5}, {path: /spec/a/b, operator: add, value: 5}]`, "", `OverridePolicy shop/p, spec.overrideRules[0].overriders.plaintext[1], for Deployment shop/web in cluster "east", path "/spec/a/b": there is nothing to add it to`},
		"the order of fields": {deployment, `
plaintext: [{path: /spec/template/spec/containers/0/args, operator: replace, value: [last]}]
argsOverrider: [{containerName: app, operator: add, value: [first]}]`, with(deployment, `["--a","--b","--a"]`, `["last"]`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := apply(t, tc.object, one(overriders(t, tc.overriders)))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("the error is %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sameJSON(t, got, tc.want)
		})
	}
}

// mark is a policy that writes its name over that of those before it.
func mark(kind, name string, rules ...string) policy.Policy {
	p := policy.Policy{Kind: kind, Name: name, UID: "u", Generation: 1, Spec: &policyv1alpha1.OverrideSpec{}}
	if kind == policy.Namespaced {
		p.Namespace = "shop"
	}
	for _, rule := range append([]string{name}, rules...) {
		value, _ := json.Marshal(rule)
		p.Spec.OverrideRules = append(p.Spec.OverrideRules, policyv1alpha1.RuleWithCluster{Overriders: policyv1alpha1.Overriders{
			AnnotationsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{Operator: policyv1alpha1.OverrideAdd, Value: map[string]string{"last": rule}}},
			Plaintext:            []policyv1alpha1.PlaintextOverrider{{Path: "/order/-", Operator: policyv1alpha1.OverrideAdd, Value: &apiextensionsv1.JSON{Raw: value}}},
		}})
	}
	return p
}

func selecting(p policy.Policy, s ...policyv1alpha1.ResourceSelector) policy.Policy {
	p.Spec.ResourceSelectors = s
	return p
}

func TestOrder(t *testing.T) {
	t.Parallel()
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"shop","labels":{"app":"web"}},"order":[]}`
	kind := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}
	label, byName, other := kind, kind, kind
	label.LabelSelector, byName.Name, other.Name = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, "c", "d"
	away := mark(policy.Namespaced, "away", "away-2")
	away.Spec.OverrideRules[0].TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"west"}}
	elsewhere := mark(policy.Namespaced, "elsewhere")
	elsewhere.Namespace = "office"
	older := mark(policy.Cluster, "older")
	older.Spec = &policyv1alpha1.OverrideSpec{Overriders: &older.Spec.OverrideRules[0].Overriders}
	got, err := apply(t, object,
		selecting(mark(policy.Namespaced, "a-name"), byName), selecting(mark(policy.Namespaced, "z-kind"), kind),
		selecting(mark(policy.Namespaced, "b-label"), label), mark(policy.Namespaced, "z-all"), mark(policy.Namespaced, "y-all", "y-2"),
		selecting(mark(policy.Cluster, "name"), kind, byName), mark(policy.Cluster, "all"), older,
		away, elsewhere, selecting(mark(policy.Namespaced, "other"), other))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Order    []string
		Metadata metav1.ObjectMeta
	}
	if err := json.Unmarshal([]byte(got), &c); err != nil {
		t.Fatal(err)
	}
	const want = "all older name away-2 y-all y-2 z-all z-kind b-label a-name"
	if order := strings.Join(c.Order, " "); order != want || c.Metadata.Annotations["last"] != "a-name" {
		t.Errorf("the order is %s, want %s", order, want)
	}
	clusterScoped := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"order":[]}`
	if got, err = apply(t, clusterScoped, mark(policy.Namespaced, "p")); err != nil || got != clusterScoped {
		t.Errorf("a cluster-scoped object is changed by an OverridePolicy: %s, %v", got, err)
	}
}

func TestUnclear(t *testing.T) {
	t.Parallel()
	unreadable := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	badObjects := selecting(mark(policy.Namespaced, "p"), policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", LabelSelector: unreadable})
	badClusters := one(policyv1alpha1.Overriders{})
	badClusters.Spec.OverrideRules[0].TargetCluster = &policyv1alpha1.ClusterAffinity{LabelSelector: unreadable}
	for want, p := range map[string]policy.Policy{
		"spec.resourceSelectors[0].labelSelector cannot be understood":           badObjects,
		"spec.overrideRules[0].targetCluster.labelSelector cannot be understood": badClusters,
	} {
		if _, err := apply(t, deployment, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	o := policy.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	key := func(labels map[string]string, policies ...policy.Policy) string {
		c := clusteraffinity.Locate("east", labels)
		set := policy.Match(policies, []policy.Object{o}, &c)
		return set.Key()
	}
	p := one(policyv1alpha1.Overriders{})
	p.Spec.OverrideRules[0].TargetCluster = &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}
	edited, remade := p, p
	edited.Generation, remade.UID = 2, "v"
	prod := map[string]string{"env": "prod"}
	before := key(prod, p)
	if before == "" || key(prod, edited) == before || key(prod, remade) == before {
		t.Error("an edited policy, or another one of its name, has the same key")
	}
	if key(nil, p) != "" || key(map[string]string{"env": "prod", "more": "x"}, p) != before {
		t.Error("the key does not follow what the rules look at of a cluster, and that alone")
	}
	unrelated := selecting(mark(policy.Namespaced, "q"), policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Secret"})
	if key(prod, unrelated, p) != before {
		t.Error("a policy for other objects changes the key")
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	objects, known := policy.Described(policy.Describe([][]byte{[]byte(deployment)}))
	if !known || len(objects) != 1 || objects[0].String() != "Deployment shop/web" || objects[0].Labels["tier"] != "front" {
		t.Errorf("read back: %v, %v", objects, known)
	}
	long, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": strings.Repeat("x", 70<<10)}}})
	if text := policy.Describe([][]byte{long}); text != "" {
		t.Errorf("a description of %d bytes is written", len(text))
	}
	for _, text := range []string{"", "{", `{"a":1}`} {
		if _, known := policy.Described(text); known {
			t.Errorf("%q is read as a description", text)
		}
	}
}

// TestNothingPanics has any overriders change any object: there is a result that is the same object still, or an error.
func TestNothingPanics(t *testing.T) {
	t.Parallel()
	pointers := rapid.SampledFrom([]string{"", "/", "/spec", "/spec/template/spec/containers/0/image", "/data/x", "/data", "/metadata/labels", "/metadata", "/metadata/name",
		"/spec/-", "/spec/0", "/data/x/0", "/~", "/~2", "/a~1b", "/kind", "/list/99999999999", "/list/-1", "/list/01"})
	operators := rapid.SampledFrom([]policyv1alpha1.OverriderOperator{"add", "remove", "replace", "", "move"})
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "null", "{}", "[]", "1", "a: &x [*x]", "{\"a\":1}", "a:5/b@c", "r.io/x:1", "---\n---\n"}))
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		simple := rapid.OneOf(rapid.Just[any](nil), rapid.Map(texts, func(s string) any { return s }), rapid.Map(rapid.Int64(), func(i int64) any { return i }))
		if depth == 0 {
			return simple
		}
		keys := rapid.SampledFrom([]string{"spec", "template", "containers", "initContainers", "image", "args", "name", "a", "0", "labels"})
		return rapid.OneOf(simple,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 3), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(keys, value(depth-1), 0, 4), func(m map[string]any) any { return m }))
	}
	rapid.Check(t, func(t *rapid.T) {
		object := map[string]any{"apiVersion": "v1", "kind": rapid.SampledFrom([]string{"Pod", "CronJob", "Deployment", "PodTemplate"}).Draw(t, "kind"),
			"metadata": map[string]any{"name": "n", "namespace": "shop"}, "spec": value(4).Draw(t, "spec"), "data": map[string]any{"x": texts.Draw(t, "text")}, "list": []any{"a"}}
		if rapid.Bool().Draw(t, "labelled") {
			object["metadata"].(map[string]any)["annotations"] = value(2).Draw(t, "annotations")
		}
		raw, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		jsonValue := rapid.Custom(func(t *rapid.T) *apiextensionsv1.JSON {
			if rapid.Bool().Draw(t, "none") {
				return nil
			}
			text, _ := json.Marshal(value(2).Draw(t, "value"))
			return &apiextensionsv1.JSON{Raw: rapid.SampledFrom([][]byte{text, []byte("{"), nil}).Draw(t, "raw")}
		})
		patches := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policyv1alpha1.FieldPatch {
			return policyv1alpha1.FieldPatch{SubPath: pointers.Draw(t, "sub"), Operator: operators.Draw(t, "op"), Value: jsonValue.Draw(t, "v")}
		}), 0, 2)
		list := rapid.SliceOfN(texts, 0, 2)
		entries := rapid.MapOfN(texts, texts, 0, 2)
		o := policyv1alpha1.Overriders{}
		switch rapid.IntRange(0, 4).Draw(t, "overrider") {
		case 0:
			i := policyv1alpha1.ImageOverrider{Operator: operators.Draw(t, "op"), Value: texts.Draw(t, "v"),
				Component: rapid.SampledFrom([]policyv1alpha1.ImageComponent{"Registry", "Repository", "Tag", ""}).Draw(t, "component")}
			if rapid.Bool().Draw(t, "named") {
				i.Predicate = &policyv1alpha1.ImagePredicate{Path: policyv1alpha1.ObjectPath(pointers.Draw(t, "path"))}
			}
			o.ImageOverrider = []policyv1alpha1.ImageOverrider{i}
		case 1:
			o.ArgsOverrider = []policyv1alpha1.CommandArgsOverrider{{ContainerName: texts.Draw(t, "name"), Operator: operators.Draw(t, "op"), Value: list.Draw(t, "v")}}
		case 2:
			o.LabelsOverrider = []policyv1alpha1.LabelAnnotationOverrider{{Operator: operators.Draw(t, "op"), Value: entries.Draw(t, "v")}}
			o.AnnotationsOverrider = o.LabelsOverrider
		case 3:
			o.FieldOverrider = []policyv1alpha1.FieldOverrider{{FieldPath: policyv1alpha1.ObjectPath(pointers.Draw(t, "path")), JSON: patches.Draw(t, "json"), YAML: patches.Draw(t, "yaml")}}
		case 4:
			o.Plaintext = []policyv1alpha1.PlaintextOverrider{{Path: policyv1alpha1.ObjectPath(pointers.Draw(t, "path")), Operator: operators.Draw(t, "op"), Value: jsonValue.Draw(t, "v")}}
		}
		look := policy.Object{APIVersion: "v1", Kind: object["kind"].(string), Namespace: "shop", Name: "n"}
		c := clusteraffinity.Locate("east", nil)
		set := policy.Match([]policy.Policy{one(o)}, []policy.Object{look}, &c)
		changed, err := set.Apply(raw)
		if err != nil {
			return
		}
		after, err := policy.Look(changed)
		if err != nil || after.String() != look.String() {
			t.Fatalf("the object became %s: %v", changed, err)
		}
	})
}
