package placement

import (
	"strings"
	"testing"
	"unicode/utf8"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"pgregory.net/rapid"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 3*maxQuote, -1).Draw(t, "text")
		got := Quote(text)
		switch {
		case len(text) <= maxQuote && got != text:
			t.Fatalf("%q became %q", text, got)
		case len(got) > maxQuote || utf8.ValidString(text) != utf8.ValidString(got):
			t.Fatalf("%d bytes became %d, valid %v", len(text), len(got), utf8.ValidString(got))
		case !strings.HasPrefix(text, strings.TrimSuffix(got, "…")):
			t.Fatalf("%q does not begin %q", got, text)
		}
	})
}

func TestNamesForPeople(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		ObjectName("ConfigMap", "shop", "settings"): "ConfigMap shop/settings",
		ObjectName("Namespace", "", "shop"):         "Namespace shop",
		Owner(nil):                                  "",
		Owner(map[string]string{placementv1.LabelParentNamespace: "shop"}):                                          "",
		Owner(map[string]string{placementv1.LabelParentPlacement: "web"}):                                           `ClusterResourcePlacement "web"`,
		Owner(map[string]string{placementv1.LabelParentPlacement: "web", placementv1.LabelParentNamespace: "shop"}): `ResourcePlacement "shop/web"`,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
