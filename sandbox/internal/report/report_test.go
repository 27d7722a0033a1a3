package report

import (
	"bytes"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	for name, tc := range map[string]struct {
		terminal bool
		want     string
	}{
		"on a terminal a status is drawn over": {
			terminal: true,
			want:     "begin\n" + "1 of 3" + "\r\x1b[K" + "2 of 3" + "\r\x1b[K" + "end\n",
		},
		"elsewhere it is written now and then": {
			want: "begin\n" + "2 of 3\n" + "end\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			var out bytes.Buffer
			r := &Report{out: &out, terminal: tc.terminal, now: func() time.Time { return now }}
			r.Line("begin")
			r.Status("%d of 3", 1)
			now = now.Add(time.Millisecond)
			r.Status("too early to be drawn")
			now = now.Add(repeatEvery)
			r.Status("%d of 3", 2)
			r.Clear()
			r.Line("end")
			if got := out.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
