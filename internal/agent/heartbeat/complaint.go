package heartbeat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fleetwright/fleetwright/internal/placement"
)

// maxComplaint is how much is told of what has failed, in bytes: the hub keeps no more than 32 KiB of a condition's message.
const maxComplaint = 1024

// complaint says what has failed, in few words, and how many things have.
func complaint(failed error) string {
	all := each(failed)
	text := all[0].Error()
	if len(all) > 1 {
		texts := make([]string, len(all))
		for i, err := range all {
			texts[i] = err.Error()
		}
		text = fmt.Sprintf("%d things failed: %s", len(all), strings.Join(texts, "; "))
	}
	return placement.Cut(text, maxComplaint)
}

// each are the errors that were joined. What wraps others has words of its own, and counts as one.
func each(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, each(e)...)
	}
	return all
}
