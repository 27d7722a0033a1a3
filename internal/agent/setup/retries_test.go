package setup

import (
	"errors"
	"testing"
	"time"
)

// TestRetries is a membership that fails at once, later after it has lasted, and then ends well.
func TestRetries(t *testing.T) {
	t.Parallel()
	const s = time.Second
	refused, silent := errors.New("refused"), errors.New("does not answer")
	var r retries
	for i, step := range []struct {
		lasted time.Duration
		err    error
		pause  time.Duration
		news   bool
	}{
		{0, refused, s, true}, {0, refused, 2 * s, false}, {0, refused, 4 * s, false}, {0, silent, 8 * s, true}, {0, silent, 16 * s, false},
		{0, silent, 30 * s, false}, {0, silent, 30 * s, false}, {time.Minute, silent, s, true}, {0, silent, 2 * s, false}, {0, nil, s, false}, {0, silent, 2 * s, true},
	} {
		if pause, news := r.next(step.lasted, step.err); pause != step.pause || news != step.news {
			t.Errorf("step %d: after %s, news: %t; want after %s, news: %t", i, pause, news, step.pause, step.news)
		}
	}
}
