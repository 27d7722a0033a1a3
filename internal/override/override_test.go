package override

import (
	"strings"
	"testing"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

var (
	web    = placementv1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	role   = placementv1.ResourceIdentifier{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "web"}
	shop   = placementv1.ResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "shop"}
	member = Cluster{Name: "member1", Labels: map[string]string{"env": "prod", "topology/zone": "eu~1/x"}}
)

func selectorOf(id placementv1.ResourceIdentifier) placementv1.ResourceOverrideSelector {
	return placementv1.ResourceOverrideSelector{Group: id.Group, Version: id.Version, Kind: id.Kind, Name: id.Name}
}

// revision is a snapshot of an override; with a namespace, of a ResourceOverride.
func revision(namespace, name string, about placementv1.ResourceIdentifier, rules ...placementv1.OverrideRule) placementv1.OverrideSnapshotObject {
	parent, _ := SplitName(name)
	about.Namespace = ""
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name,
		Labels: map[string]string{placementv1.LabelParentOverride: parent, placementv1.LabelIsLatestSnapshot: "true"}}
	policy := &placementv1.OverridePolicy{OverrideRules: rules}
	if namespace == "" {
		s := &placementv1.ClusterResourceOverrideSnapshot{ObjectMeta: meta}
		s.Spec.OverrideSpec.Policy = policy
		s.Spec.OverrideSpec.ClusterResourceSelectors = []placementv1.ResourceSelector{{Group: about.Group, Version: about.Version, Kind: about.Kind, Name: about.Name}}
		return s
	}
	s := &placementv1.ResourceOverrideSnapshot{ObjectMeta: meta}
	s.Spec.OverrideSpec.Policy = policy
	s.Spec.OverrideSpec.ResourceSelectors = []placementv1.ResourceOverrideSelector{selectorOf(about)}
	return s
}

func forPlacement(s placementv1.OverrideSnapshotObject, name string, scope placementv1.ResourceScope) placementv1.OverrideSnapshotObject {
	ref := &placementv1.PlacementRef{Name: name, Scope: scope}
	switch o := s.(type) {
	case *placementv1.ClusterResourceOverrideSnapshot:
		o.Spec.OverrideSpec.Placement = ref
	case *placementv1.ResourceOverrideSnapshot:
		o.Spec.OverrideSpec.Placement = ref
	}
	return s
}

var all = &placementv1.OverrideClusterSelector{}

func env(value string) *placementv1.OverrideClusterSelector {
	return &placementv1.OverrideClusterSelector{ClusterSelectorTerms: []placementv1.OverrideClusterSelectorTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"never": "x"}}},
		{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": value}}},
	}}
}

func patches(where *placementv1.OverrideClusterSelector, changes ...string) placementv1.OverrideRule {
	rule := placementv1.OverrideRule{ClusterSelector: where, OverrideType: placementv1.JSONPatchOverrideType}
	for _, change := range changes {
		op, rest, _ := strings.Cut(change, " ")
		path, value, hasValue := strings.Cut(rest, " ")
		p := placementv1.JSONPatchOverride{Operator: placementv1.JSONPatchOverrideOperator(op), Path: path}
		if hasValue {
			p.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
		}
		rule.JSONPatchOverrides = append(rule.JSONPatchOverrides, p)
	}
	return rule
}

func TestIsFor(t *testing.T) {
	t.Parallel()
	cluster, namespaced := revision("", "o-0", shop), revision("shop", "o-0", web)
	tests := map[string]struct {
		s    placementv1.OverrideSnapshotObject
		key  placement.Key
		want bool
	}{
		"none named, cluster-scoped":      {revision("", "o-0", shop), placement.Key{Name: "p"}, true},
		"none named, namespaced":          {revision("", "o-0", shop), placement.Key{Namespace: "shop", Name: "p"}, true},
		"its own":                         {forPlacement(revision("", "o-0", shop), "p", placementv1.ClusterScoped), placement.Key{Name: "p"}, true},
		"another":                         {forPlacement(revision("", "o-0", shop), "q", placementv1.ClusterScoped), placement.Key{Name: "p"}, false},
		"a ResourcePlacement of the name": {forPlacement(cluster, "p", placementv1.ClusterScoped), placement.Key{Namespace: "shop", Name: "p"}, false},
		"of a namespace, for a ClusterResourcePlacement":     {forPlacement(namespaced, "p", placementv1.ClusterScoped), placement.Key{Name: "p"}, true},
		"of a namespace, for its ResourcePlacement":          {forPlacement(revision("shop", "o-0", web), "p", placementv1.NamespaceScoped), placement.Key{Namespace: "shop", Name: "p"}, true},
		"of a namespace, and not a ClusterResourcePlacement": {forPlacement(revision("shop", "o-0", web), "p", placementv1.NamespaceScoped), placement.Key{Name: "p"}, false},
		"a ResourcePlacement of another namespace":           {forPlacement(revision("shop", "o-0", web), "p", placementv1.NamespaceScoped), placement.Key{Namespace: "bank", Name: "p"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := IsFor(tc.s, tc.key); got != tc.want {
				t.Errorf("for %v: %v, want %v", tc.key, got, tc.want)
			}
		})
	}
}

func TestSelects(t *testing.T) {
	t.Parallel()
	inBank := web
	inBank.Namespace = "bank"
	older := web
	older.Version = "v1beta1"
	tests := map[string]struct {
		s    placementv1.OverrideSnapshotObject
		id   placementv1.ResourceIdentifier
		want bool
	}{
		"a cluster-scoped object":          {revision("", "o-0", role), role, true},
		"another kind":                     {revision("", "o-0", role), shop, false},
		"a namespace":                      {revision("", "o-0", shop), shop, true},
		"what is in the namespace":         {revision("", "o-0", shop), web, true},
		"what is in another namespace":     {revision("", "o-0", shop), inBank, false},
		"an object in a namespace":         {revision("shop", "o-0", web), web, true},
		"one of the name elsewhere":        {revision("shop", "o-0", web), inBank, false},
		"one in another version":           {revision("shop", "o-0", web), older, false},
		"cluster-wide, an object's name":   {revision("", "o-0", web), web, false},
		"of a namespace, cluster-scoped":   {revision("shop", "o-0", role), role, false},
		"of a namespace, for a Namespace":  {revision("shop", "o-0", shop), shop, false},
		"of a namespace, for its contents": {revision("shop", "o-0", shop), web, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Selects(tc.s, tc.id); got != tc.want {
				t.Errorf("selects %+v: %v, want %v", tc.id, got, tc.want)
			}
		})
	}
}

// Order: cluster-wide ones by name, then those of namespaces by namespace and name; of each the newest that is the latest.
func TestLatestAndOrder(t *testing.T) {
	t.Parallel()
	retired := revision("", "a-3", shop, patches(all, "remove /x"))
	retired.GetLabels()[placementv1.LabelIsLatestSnapshot] = "false"
	deleted := revision("", "gone-0", shop, patches(all, "remove /x"))
	deleted.SetDeletionTimestamp(ptr.To(metav1.Now()))
	latest := Latest([]placementv1.OverrideSnapshotObject{
		revision("shop", "b-0", web, patches(all, "remove /x")), revision("bank", "z-0", web, patches(all, "remove /x")),
		revision("", "z-0", shop, patches(all, "remove /x")), revision("", "a-10", shop, patches(all, "remove /x")),
		revision("", "a-9", shop, patches(all, "remove /x")), retired, deleted,
		revision("shop", "a-0", web, patches(env("test"), "remove /x")), revision("", "other-0", role, patches(all, "remove /x")),
	})
	got := Match(latest, placement.Key{Name: "p"}, []placementv1.ResourceIdentifier{shop, web}).For(member.Labels)
	want := Applied{
		AppliedOverrides: placementv1.AppliedOverrides{
			ClusterResourceOverrideSnapshots: []string{"a-10", "z-0"},
			ResourceOverrideSnapshots:        []placementv1.NamespacedName{{Namespace: "shop", Name: "b-0"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
}

// What of a cluster's labels matters is what is recorded: those that rules select by, and those that the values of the
// cluster's own rules name.
func TestLabelsThatAreAskedFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		rules []placementv1.OverrideRule
		want  map[string]string
	}{
		"none":                           {[]placementv1.OverrideRule{patches(all, "remove /x")}, nil},
		"by the selector":                {[]placementv1.OverrideRule{patches(env("prod"), "remove /x")}, map[string]string{"env": "prod"}},
		"by a value":                     {[]placementv1.OverrideRule{patches(all, `add /x {"a":["${MEMBER-CLUSTER-LABEL-KEY-topology/zone}"]}`)}, map[string]string{"topology/zone": "eu~1/x"}},
		"by a path":                      {[]placementv1.OverrideRule{patches(all, `add /${MEMBER-CLUSTER-LABEL-KEY-env} 1`)}, map[string]string{"env": "prod"}},
		"one that the cluster has not":   {[]placementv1.OverrideRule{patches(all, `add /x "${MEMBER-CLUSTER-LABEL-KEY-rack}"`)}, nil},
		"a value of others' rule":        {[]placementv1.OverrideRule{patches(all, "remove /x"), patches(nil, `add /x "${MEMBER-CLUSTER-LABEL-KEY-env}"`)}, nil},
		"a variable that does not close": {[]placementv1.OverrideRule{patches(all, `add /x "${MEMBER-CLUSTER-LABEL-KEY-env"`)}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Match([]placementv1.OverrideSnapshotObject{revision("", "o-0", shop, tc.rules...)}, placement.Key{Name: "p"}, []placementv1.ResourceIdentifier{web})
			if got := m.For(member.Labels); !cmp.Equal(got.Labels, tc.want) || got.Empty() {
				t.Errorf("labels %v of %+v, want %v", got.Labels, got, tc.want)
			}
		})
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	const object = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":2,"list":["a","b"],"big":12345678901234567890}}`
	tests := map[string]struct {
		rules   []placementv1.OverrideRule
		want    string // what spec is; "-" where the object is left out
		failure []string
	}{
		"no selector selects no cluster":   {rules: []placementv1.OverrideRule{patches(nil, "remove /spec/list")}, want: `{"replicas":2,"list":["a","b"],"big":12345678901234567890}`},
		"another cluster's":                {rules: []placementv1.OverrideRule{patches(env("test"), "remove /spec/list")}, want: `{"replicas":2,"list":["a","b"],"big":12345678901234567890}`},
		"terms are alternatives":           {rules: []placementv1.OverrideRule{patches(env("prod"), "replace /spec 1")}, want: `1`},
		"later ones win":                   {rules: []placementv1.OverrideRule{patches(all, "replace /spec 1", "replace /spec 2"), patches(all, "replace /spec 3")}, want: `3`},
		"large numbers stay what they are": {rules: []placementv1.OverrideRule{patches(all, "remove /spec/list", "add /spec/replicas 3")}, want: `{"replicas":3,"big":12345678901234567890}`},
		"to the end of a list":             {rules: []placementv1.OverrideRule{patches(all, `add /spec/list/- "${MEMBER-CLUSTER-NAME}!"`, "remove /spec/big")}, want: `{"replicas":2,"list":["a","b","member1!"]}`},
		"variables in keys and nested": {
			rules: []placementv1.OverrideRule{patches(all, `replace /spec {"${MEMBER-CLUSTER-NAME}":[{"z":"${MEMBER-CLUSTER-LABEL-KEY-topology/zone}-${MEMBER-CLUSTER-LABEL-KEY-env}"}],"n":1.50}`)},
			want:  `{"member1":[{"z":"eu~1/x-prod"}],"n":1.50}`,
		},
		"a variable in a path is escaped": {
			rules: []placementv1.OverrideRule{patches(all, `replace /spec {}`, `add /spec/${MEMBER-CLUSTER-LABEL-KEY-topology/zone} 1`)},
			want:  `{"eu~1/x":1}`,
		},
		"what only looks like a variable": {
			rules: []placementv1.OverrideRule{patches(all, `replace /spec "${MEMBER-CLUSTER-NAMES} ${MEMBER-CLUSTER-LABEL-KEY-env ${HOME} $"`)},
			want:  `"${MEMBER-CLUSTER-NAMES} ${MEMBER-CLUSTER-LABEL-KEY-env ${HOME} $"`,
		},
		"left out":                  {rules: []placementv1.OverrideRule{{ClusterSelector: all, OverrideType: placementv1.DeleteOverrideType}, patches(all, "remove /nothing")}, want: "-"},
		"left out elsewhere":        {rules: []placementv1.OverrideRule{{ClusterSelector: env("test"), OverrideType: placementv1.DeleteOverrideType}, patches(all, "replace /spec 1")}, want: "1"},
		"a failure before it":       {rules: []placementv1.OverrideRule{patches(all, "remove /nothing"), {ClusterSelector: all, OverrideType: placementv1.DeleteOverrideType}}, failure: []string{"rule 1", "/nothing"}},
		"the second of two changes": {rules: []placementv1.OverrideRule{patches(all, "replace /spec/replicas 1", "remove /spec/nothing")}, failure: []string{`path "/spec/nothing"`, "nothing in the object to remove"}},
		"nothing to replace":        {rules: []placementv1.OverrideRule{patches(all, "replace /spec/x 1")}, failure: []string{"use add"}},
		"no parent":                 {rules: []placementv1.OverrideRule{patches(all, "add /spec/x/y 1")}, failure: []string{"add the parent"}},
		"no such item":              {rules: []placementv1.OverrideRule{patches(all, "replace /spec/list/7 1")}, failure: []string{"/spec/list/7"}},
		"a negative index":          {rules: []placementv1.OverrideRule{patches(all, "remove /spec/list/-1")}, failure: []string{"/spec/list/-1"}},
		"through a number":          {rules: []placementv1.OverrideRule{patches(all, "add /spec/replicas/x 1")}, failure: []string{"/spec/replicas/x"}},
		"no value":                  {rules: []placementv1.OverrideRule{patches(all, "add /spec/x")}, failure: []string{"add needs a value"}},
		"no such label":             {rules: []placementv1.OverrideRule{patches(all, `add /spec/x "${MEMBER-CLUSTER-LABEL-KEY-rack}"`)}, failure: []string{`label "rack"`, "MemberCluster", `path "/spec/x"`}},
		"no such label in a path":   {rules: []placementv1.OverrideRule{patches(all, `add /spec/${MEMBER-CLUSTER-LABEL-KEY-rack} 1`)}, failure: []string{`label "rack"`}},
		"the name":                  {rules: []placementv1.OverrideRule{patches(all, `replace /metadata/name "x"`)}, failure: []string{"labels and annotations alone"}},
		"all of the metadata":       {rules: []placementv1.OverrideRule{patches(all, `replace /metadata {"name":"x"}`)}, failure: []string{"labels and annotations alone"}},
		"the kind":                  {rules: []placementv1.OverrideRule{patches(all, `replace /kind "x"`)}, failure: []string{"cannot change kind"}},
		"the group":                 {rules: []placementv1.OverrideRule{patches(all, `replace /apiVersion "x/v1"`)}, failure: []string{"cannot change apiVersion"}},
		"the status":                {rules: []placementv1.OverrideRule{patches(all, `add /status {}`)}, failure: []string{"status"}},
		"all of it":                 {rules: []placementv1.OverrideRule{patches(all, `replace / {}`)}, failure: []string{"not a JSON pointer"}},
		"an escape that is none":    {rules: []placementv1.OverrideRule{patches(all, `add /spec/a~2 1`)}, failure: []string{"not a JSON pointer"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed, left, err := Apply([]placementv1.OverrideSnapshotObject{revision("shop", "limits-4", web, tc.rules...)}, member, web, []byte(object))
			if (err != nil) != (tc.failure != nil) {
				t.Fatalf("error %v, want one that names %q", err, tc.failure)
			}
			if err != nil {
				for _, part := range append(tc.failure, "ResourceOverride shop/limits (snapshot 4)", "Deployment.apps shop/web", `cluster "member1"`) {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error %q does not name %s", err, part)
					}
				}
				return
			}
			if !left {
				changed = []byte("-")
			} else {
				changed = []byte(strings.TrimSuffix(string(changed[strings.Index(string(changed), `"spec":`)+len(`"spec":`):]), "}"))
			}
			if diff := cmp.Diff(tc.want, string(changed)); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// A variable that stands for the path's first field does not get around the rules either.
func TestVariableForAField(t *testing.T) {
	t.Parallel()
	c := Cluster{Name: "status", Labels: map[string]string{"a": "kind", "b": "name"}}
	for _, path := range []string{"/${MEMBER-CLUSTER-NAME}", "/${MEMBER-CLUSTER-LABEL-KEY-a}", "/metadata/${MEMBER-CLUSTER-LABEL-KEY-b}"} {
		if _, _, err := Apply([]placementv1.OverrideSnapshotObject{revision("", "o-0", role, patches(all, "add "+path+` "x"`))}, c, role, []byte(`{"metadata":{"name":"web"}}`)); err == nil {
			t.Errorf("path %s is taken", path)
		}
	}
}

// Secrets are not quoted, whatever fails.
func TestFailuresQuoteNothing(t *testing.T) {
	t.Parallel()
	for _, change := range []string{`add /data/password/x "s3cret"`, `replace /data/nothing "s3cret"`, `add /data/list/9 "s3cret"`, `add /a/b/c {"s3cret":"s3cret"}`} {
		_, _, err := Apply([]placementv1.OverrideSnapshotObject{revision("", "o-0", role, patches(all, change))}, member, role, []byte(`{"data":{"password":"s3cret","list":[]}}`))
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: error %v", change, err)
		}
	}
}

// Whatever the labels of a cluster are, a value with variables is the text with the values in their places.
func TestExpandProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[A-Za-z0-9./~${}-]{0,12}`).Draw(t, "value")
		before := rapid.StringMatching(`[a-z/${]{0,8}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-z/}$]{0,8}`).Draw(t, "after")
		c := Cluster{Name: "n", Labels: map[string]string{"k": value}}
		got, err := expand(before+"${MEMBER-CLUSTER-LABEL-KEY-k}"+after, c, func(s string) string { return s })
		if err != nil || got != before+value+after {
			t.Fatalf("%q, error %v, want %q", got, err, before+value+after)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		parent string
		index  int
	}{"a-0": {"a", 0}, "a-b-12": {"a-b", 12}, "a": {"", -1}, "a-x": {"", -1}, "a-01": {"", -1}, "a--1": {"a-", 1}, "-": {"", -1}} {
		if parent, index := SplitName(name); parent != want.parent || index != want.index {
			t.Errorf("%q is %q and %d, want %q and %d", name, parent, index, want.parent, want.index)
		}
	}
}

func TestGive(t *testing.T) {
	t.Parallel()
	b := &placementv1.ClusterResourceBinding{}
	a := Applied{AppliedOverrides: placementv1.AppliedOverrides{ClusterResourceOverrideSnapshots: []string{"a-0"}}, Labels: map[string]string{"env": "prod"}}
	a.Give(b)
	if got := AppliedTo(b); !got.Equal(a) || got.Empty() {
		t.Errorf("given %+v, has %+v", a, got)
	}
	a.Labels["env"] = "test"
	if c := AppliedTo(b).Cluster("m"); c.Name != "m" || c.Labels["env"] != "prod" {
		t.Errorf("cluster %+v", c)
	}
	Applied{}.Give(b)
	if got := AppliedTo(b); !got.Equal(Applied{}) || !got.Empty() || got.Labels != nil {
		t.Errorf("given nothing, has %+v", got)
	}
}
