package setup

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestNamespaces(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		value     string
		want      Namespaces
		wantError []string
	}{
		"none":              {value: ""},
		"one":               {value: "platform", want: Namespaces{"platform"}},
		"several":           {value: "platform,audit", want: Namespaces{"audit", "platform"}},
		"spaces and twice":  {value: "platform, audit,platform ", want: Namespaces{"audit", "platform"}},
		"not a name":        {value: "platform,Audit", wantError: []string{"-skipped-namespaces", `"Audit"`}},
		"a pattern":         {value: "team-*", wantError: []string{"-skipped-namespaces", `"team-*"`}},
		"nothing between":   {value: "platform,,audit", wantError: []string{"-skipped-namespaces", `""`}},
		"another separator": {value: "platform;audit", wantError: []string{"-skipped-namespaces", `"platform;audit"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got Namespaces
			flags := flag.NewFlagSet("hub", flag.ContinueOnError)
			flags.SetOutput(io.Discard)
			flags.Var(&got, "skipped-namespaces", "")
			err := flags.Parse([]string{"--skipped-namespaces", tc.value})
			if (err != nil) != (tc.wantError != nil) {
				t.Fatalf("error %v, want one that names %q", err, tc.wantError)
			}
			for _, part := range tc.wantError {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not name %s", err, part)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}
