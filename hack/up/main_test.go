package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/internal/quickstart"
)

// What went wrong is followed by what to do.
func TestExplain(t *testing.T) {
	sandbox := fmt.Errorf("%w: exit status 1", quickstart.ErrSandbox)
	for name, tc := range map[string]struct {
		err               error
		interrupted, down bool
		want              []string
		wantNot           string
	}{
		"interrupted while starting": {err: sandbox, interrupted: true, want: []string{"Interrupted", "keeps running", "make up", "make down"}, wantNot: "exit status"},
		"interrupted while stopping": {err: sandbox, interrupted: true, down: true, want: []string{"Interrupted", "make down"}, wantNot: "make up"},
		"a server did not start":     {err: sandbox, want: []string{"see above", "make up MEMBERS=2", "README.md"}},
		"a server did not stop":      {err: sandbox, down: true, want: []string{"exit status 1"}, wantNot: "MEMBERS"},
		"a member did not join":      {err: errors.New("join member1: no"), want: []string{"join member1: no"}, wantNot: "MEMBERS"},
	} {
		t.Run(name, func(t *testing.T) {
			got := explain(tc.err, tc.interrupted, tc.down)
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in: %s", want, got)
				}
			}
			if tc.wantNot != "" && strings.Contains(got, tc.wantNot) {
				t.Errorf("%q stands in: %s", tc.wantNot, got)
			}
		})
	}
}
