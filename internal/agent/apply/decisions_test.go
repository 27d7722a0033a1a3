package apply

import (
	"strings"
	"testing"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var thing = objectKey{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, namespace: "app", name: "settings"}

// fleetOf makes the Works of a cluster. Each is written as name, binding/index/parts, marks: lists, deleting, confirmed.
func fleetOf(lines ...string) works {
	all := works{}
	for _, line := range lines {
		fields := strings.Fields(line)
		rendered := strings.Split(fields[1], "/")
		marks := strings.Join(fields[2:], " ")
		v := &view{
			name: fields[0], placement: rendered[0], binding: rendered[0], index: rendered[1], parts: len(rendered[2]),
			deleting: strings.Contains(marks, "deleting"), removal: strings.Contains(marks, "confirmed"), objects: map[objectKey]bool{},
		}
		if strings.Contains(marks, "lists") {
			v.objects[thing] = true
		}
		all[v.name] = v
	}
	return all
}

func TestPartingOf(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		works []string
		age   time.Duration
		want  parting
		rest  time.Duration
	}{
		"nobody wants it":                            {[]string{"self web/1/I"}, grace, partRemove, 0},
		"another may still come":                     {[]string{"self web/1/I"}, grace / 4, partLater, grace * 3 / 4},
		"another part has it":                        {[]string{"self web/1/II", "part web/1/II lists"}, 0, partHand, 0},
		"another placement has it":                   {[]string{"self web/1/I", "other shop/7/I lists"}, time.Hour, partHand, 0},
		"a part is not there yet":                    {[]string{"self web/1/II"}, time.Hour, partLater, 0},
		"a part is of the earlier snapshot":          {[]string{"self web/1/II", "part web/0/II"}, time.Hour, partLater, 0},
		"a part goes":                                {[]string{"self web/1/II", "part web/1/II deleting confirmed"}, time.Hour, partLater, 0},
		"all parts are there":                        {[]string{"self web/1/II", "part web/1/II"}, time.Hour, partRemove, 0},
		"who has it goes, and means it":              {[]string{"self web/1/I", "other shop/7/I lists deleting confirmed"}, time.Hour, partRemove, 0},
		"who has it goes by accident":                {[]string{"self web/1/I", "other shop/7/I lists deleting"}, time.Hour, partHand, 0},
		"the Work goes":                              {[]string{"self web/1/II lists deleting confirmed"}, grace, partRemove, 0},
		"the Work goes, a moment ago":                {[]string{"self web/1/I lists deleting confirmed"}, 0, partLater, grace},
		"the Work goes, with all other parts":        {[]string{"self web/1/II lists deleting confirmed", "part web/1/II lists deleting confirmed"}, grace, partRemove, 0},
		"the Work goes, a part that stays has it":    {[]string{"self web/0/II lists deleting confirmed", "part web/1/I lists"}, grace, partHand, 0},
		"the Work goes, the part that stays is done": {[]string{"self web/0/II lists deleting confirmed", "part web/1/I"}, grace, partRemove, 0},
		"the Work goes, a part is not there yet":     {[]string{"self web/0/III lists deleting confirmed", "part web/1/II"}, time.Hour, partLater, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := fleetOf(tc.works...)
			got, rest := partingOf(thing, all["self"], all, now.Add(-tc.age), now)
			if got != tc.want || rest != tc.rest {
				t.Errorf("got %d after %s, want %d after %s", got, rest, tc.want, tc.rest)
			}
		})
	}
}

func ownedBy(names ...string) []metav1.OwnerReference {
	var owners []metav1.OwnerReference
	for _, name := range names {
		kind, name, _ := strings.Cut(name, "/")
		version := "v1"
		switch kind {
		case "AppliedWork":
			version = placementv1.GroupVersion.String()
		case "Beta":
			kind, version = "AppliedWork", "placement.kubernetes-fleet.io/v1beta1"
		case "Namesake":
			kind, version = "AppliedWork", "example.com/v1"
		case "Neighbour":
			version = placementv1.GroupVersion.String()
		}
		owners = append(owners, metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name)})
	}
	return owners
}

func TestStandingOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		owners []string
		works  []string
		want   string // of mine, holder, sibling, foreign
	}{
		"nobody":                               {nil, []string{"self web/1/I lists"}, ""},
		"this Work":                            {[]string{"AppliedWork/self"}, []string{"self web/1/I lists"}, "mine"},
		"the public system's":                  {[]string{"Beta/self"}, []string{"self web/1/I lists"}, "mine"},
		"another placement":                    {[]string{"AppliedWork/other"}, []string{"self web/1/I lists", "other shop/1/I lists"}, "holder"},
		"another placement that gave it up":    {[]string{"AppliedWork/other"}, []string{"self web/1/I lists", "other shop/2/I"}, ""},
		"another placement that goes":          {[]string{"AppliedWork/other"}, []string{"self web/1/I lists", "other shop/2/I lists deleting confirmed"}, ""},
		"another placement's Work, accident":   {[]string{"AppliedWork/other"}, []string{"self web/1/I lists", "other shop/2/I lists deleting"}, "holder"},
		"a placement that is gone":             {[]string{"AppliedWork/other"}, []string{"self web/1/I lists"}, ""},
		"a part that is not written yet":       {[]string{"AppliedWork/part"}, []string{"self web/1/II lists", "part web/0/II lists"}, "holder sibling"},
		"a part of the same snapshot":          {[]string{"AppliedWork/part"}, []string{"self web/1/II lists", "part web/1/II lists"}, "holder"},
		"something in the member":              {[]string{"Deployment/web"}, []string{"self web/1/I lists"}, "foreign"},
		"something in the member, beside us":   {[]string{"AppliedWork/self", "Deployment/web"}, []string{"self web/1/I lists"}, "mine foreign"},
		"a kind of the same name":              {[]string{"Namesake/self"}, []string{"self web/1/I lists"}, "foreign"},
		"a kind of the same group and version": {[]string{"Neighbour/self"}, []string{"self web/1/I lists"}, "foreign"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := fleetOf(tc.works...)
			s := standingOf(ownedBy(tc.owners...), thing, all["self"], all)
			var got []string
			for word, is := range map[string]bool{"mine": s.mine, "holder": s.holder != nil, "sibling": s.sibling, "foreign": s.foreign != nil} {
				if is != strings.Contains(tc.want, word) {
					got = append(got, word)
				}
			}
			if len(got) > 0 {
				t.Errorf("wrong about %v: want %q, got %+v", got, tc.want, s)
			}
		})
	}
}

func TestFateOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		uid, recorded string
		owners        []string
		deleting      bool
		letGo         bool
		want          fate
	}{
		"the very object":                       {"1", "1", []string{"AppliedWork/self"}, false, false, fateRemove},
		"the very object, under an old owner":   {"1", "1", []string{"Beta/self"}, false, false, fateRemove},
		"the very object, owner taken off":      {"1", "1", nil, false, false, fateRelease},
		"a record of what was never ours":       {"1", "1", []string{"Deployment/web"}, false, false, fateRelease},
		"let go with a deleted AppliedWork":     {"1", "1", nil, false, true, fateRemove},
		"let go, and going already":             {"1", "1", nil, true, true, fateWait},
		"let go, and owned by something else":   {"1", "1", []string{"Deployment/web"}, false, true, fateRelease},
		"let go, and taken up by another Work":  {"1", "1", []string{"AppliedWork/other"}, false, true, fateForget},
		"let go, and made anew by somebody":     {"2", "1", nil, false, true, fateForget},
		"made anew by somebody":                 {"2", "1", nil, false, false, fateForget},
		"made anew by somebody, with our owner": {"2", "1", []string{"AppliedWork/self"}, false, false, fateRelease},
		"no UID was recorded, ours":             {"1", "", []string{"AppliedWork/self"}, false, false, fateRemove},
		"no UID was recorded, not ours":         {"1", "", nil, false, false, fateForget},
		"handed over":                           {"1", "1", []string{"AppliedWork/other"}, false, false, fateForget},
		"also of another Work":                  {"1", "1", []string{"AppliedWork/self", "AppliedWork/other"}, false, false, fateRelease},
		"also of something else":                {"1", "1", []string{"AppliedWork/self", "Deployment/web"}, false, false, fateRelease},
		"being deleted":                         {"1", "1", []string{"AppliedWork/self"}, true, false, fateWait},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &metav1.ObjectMeta{UID: types.UID(tc.uid), OwnerReferences: ownedBy(tc.owners...)}
			if tc.deleting {
				live.DeletionTimestamp = &metav1.Time{}
			}
			owner := &placementv1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "self", UID: "self"}}
			if got, _ := fateOf(live, &placementv1.AppliedResourceMeta{UID: types.UID(tc.recorded)}, owner, tc.letGo); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	key := objectKey{GroupKind: namespaces, name: "app"}
	at := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	clock := &stillClock{now: at}
	p := &pass{Applier: &Applier{Options: Options{Clock: clock}, settling: settling}, memory: newMemory()}
	step := func(after time.Duration, names []string, want hold) {
		t.Helper()
		clock.now = at.Add(after)
		if diff := cmp.Diff(want, p.wait(key, names), cmp.AllowUnexported(hold{})); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", after, diff)
		}
	}
	two, one := []string{"things a", "things b"}, []string{"things b"}
	step(0, two, hold{wait: "waits until this has gone: things a, things b"})
	step(15*time.Second, one, hold{wait: "waits until this has gone: things b"})
	step(30*time.Second, one, hold{wait: "waits until this has gone: things b"}) // it has been alone for 15 s
	step(40*time.Second, nil, hold{})
	step(41*time.Second, one, hold{forGood: "with it would go: things b"})
	p.memory = newMemory()
	for i := range 25 { // others come and go all the time
		names := []string{strings.Repeat("x", i+1)}
		step(time.Duration(i)*12*time.Second, names, hold{wait: "waits until this has gone: " + names[0]})
	}
	step(5*time.Minute, two, hold{forGood: "with it would go: things a, things b"})
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"one": {`failed to create typed patch object (app/w; example.com/v1, Kind=Widget): .spec.b: field not declared in schema`, []string{".spec.b"}},
		"several": {"failed to create typed patch object (/a; apps/v1, Kind=Deployment): errors:\n  .metadata.bogus: field not declared in schema\n" +
			`  .spec.template.spec.containers[name="c: d"].new: field not declared in schema` + "\n  .spec.replicas: expected numeric (int or float), got string",
			[]string{".metadata.bogus", `.spec.template.spec.containers[name="c: d"].new`}},
		"another error": {`admission webhook "x" denied the request: field not declared in schema, it says`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, unknownFields(errorText(tc.text))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }

func TestDropField(t *testing.T) {
	t.Parallel()
	const object = `{"apiVersion":"v1","kind":"X","a":{"b":1,"c.d":{"e":1},"c":{"d":{"e":2}}},"l":[{"name":"x]","port":80,"z":1},{"name":"y","z":{"q":1}},["deep",{"z":3}]]}`
	for path, want := range map[string]string{
		".a.b":                    `{"apiVersion":"v1","kind":"X","a":{"c.d":{"e":1},"c":{"d":{"e":2}}},"l":[{"name":"x]","port":80,"z":1},{"name":"y","z":{"q":1}},["deep",{"z":3}]]}`,
		".a.c.d.e":                `{"apiVersion":"v1","kind":"X","a":{"b":1,"c.d":{},"c":{"d":{"e":2}}},"l":[{"name":"x]","port":80,"z":1},{"name":"y","z":{"q":1}},["deep",{"z":3}]]}`,
		`.l[name="x]",port=80].z`: `{"apiVersion":"v1","kind":"X","a":{"b":1,"c.d":{"e":1},"c":{"d":{"e":2}}},"l":[{"name":"x]","port":80},{"name":"y","z":{"q":1}},["deep",{"z":3}]]}`,
		// The server fills in a key by a default before it compares.
		`.l[name="y",port=443].z.q`: `{"apiVersion":"v1","kind":"X","a":{"b":1,"c.d":{"e":1},"c":{"d":{"e":2}}},"l":[{"name":"x]","port":80,"z":1},{"name":"y","z":{}},["deep",{"z":3}]]}`,
		".l[2][1].z":                `{"apiVersion":"v1","kind":"X","a":{"b":1,"c.d":{"e":1},"c":{"d":{"e":2}}},"l":[{"name":"x]","port":80,"z":1},{"name":"y","z":{"q":1}},["deep",{}]]}`,
		".a.nothing":                "", `.l[name="none"].z`: "", ".l[9].z": "", ".l[name=].z": "", ".l": `{"apiVersion":"v1","kind":"X","a":{"b":1,"c.d":{"e":1},"c":{"d":{"e":2}}}}`,
		"": "", ".l[0": "", ".a.b.c": "",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			read := func(text string) *unstructured.Unstructured {
				o := &unstructured.Unstructured{}
				if err := o.UnmarshalJSON([]byte(text)); err != nil {
					t.Fatal(err)
				}
				return o
			}
			got := read(object)
			dropped := dropField(got.Object, path)
			if dropped != (want != "") {
				t.Fatalf("dropped: %t", dropped)
			}
			if want == "" {
				want = object
			}
			if diff := cmp.Diff(read(want).Object, got.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
