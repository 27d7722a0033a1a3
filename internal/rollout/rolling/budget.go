package rolling

import (
	"strconv"
	"strings"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// limits are what a placement allows.
type limits struct {
	// unavailable and surge are numbers of clusters; the texts are as the user gave them.
	unavailable, surge         int
	unavailableText, surgeText string
	period                     time.Duration
}

func limitsOf(config *placementv1.RollingUpdateConfig, clusters int) limits {
	if config == nil {
		config = &placementv1.RollingUpdateConfig{}
	}
	var l limits
	l.unavailable, l.unavailableText = Scale(config.MaxUnavailable, placementv1.DefaultMaxUnavailable, clusters)
	l.surge, l.surgeText = Scale(config.MaxSurge, placementv1.DefaultMaxSurge, clusters)
	l.period = periodOf(config)
	return l
}

func periodOf(config *placementv1.RollingUpdateConfig) time.Duration {
	seconds := placementv1.DefaultUnavailablePeriodSeconds
	if config != nil {
		seconds = ptr.Deref(config.UnavailablePeriodSeconds, seconds)
	}
	return time.Duration(seconds) * time.Second
}

// Scale returns a limit as a number of clusters, a percentage rounded up, and as its user gave it. The API lets nothing else
// through than numbers and percentages; of anything else it makes 0, which allows nothing.
func Scale(limit *intstr.IntOrString, otherwise string, clusters int) (number int, text string) {
	value := intstr.FromString(otherwise)
	if limit != nil {
		value = *limit
	}
	if value.Type == intstr.Int {
		return max(value.IntValue(), 0), value.String()
	}
	digits, percentage := strings.CutSuffix(value.StrVal, "%")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 {
		return 0, value.StrVal
	}
	if percentage {
		n = (clusters*n + 99) / 100
	}
	return n, value.StrVal
}
