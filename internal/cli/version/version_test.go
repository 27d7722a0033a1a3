package version

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	platform := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "amd64"}}
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}}
	for name, tc := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"unknown":     {nil, "kubectl amc: it is not known what this program was built from"},
		"no version":  {&debug.BuildInfo{GoVersion: "go1.26", Settings: platform}, "kubectl amc devel (go1.26, linux/amd64)"},
		"development": {&debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}, Settings: platform}, "kubectl amc devel (go1.26, linux/amd64)"},
		"a commit": {
			&debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}, Settings: append(commit, platform...)},
			"kubectl amc v1.2.3 (commit abc with changes of 2026-01-02T03:04:05Z, go1.26, linux/amd64)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, describe(tc.info)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
