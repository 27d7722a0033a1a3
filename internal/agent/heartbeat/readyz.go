package heartbeat

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fleetwright/fleetwright/internal/placement"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// checkPeriod is how often the member's API server is asked how it is.
	checkPeriod = 15 * time.Second
	// doubtPeriod is after how long it is asked again when it did not say that it is well. Two such answers in a row count.
	doubtPeriod = 2 * time.Second
	// answerWithin is how long an answer may take.
	answerWithin = 5 * time.Second
	// longestAnswer is how much is read of what it says, and longestComplaint how much of what has failed is told: before
	// that it names dozens of checks that are well.
	longestAnswer, longestComplaint = 64 * 1024, 512
)

// checker asks the member's API server how it is.
type checker struct {
	url     string
	client  *http.Client
	clock   clock.WithTicker
	changed func()
	last    atomic.Pointer[health]
}

func newChecker(member *rest.Config, c clock.WithTicker, changed func()) (*checker, error) {
	config := rest.CopyConfig(member)
	config.Timeout = answerWithin
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the member's health: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("find the member's API server: %w", err)
	}
	return &checker{url: base.JoinPath("readyz").String(), client: client, clock: c, changed: changed}, nil
}

// Start asks until ctx ends.
func (c *checker) Start(ctx context.Context) error {
	doubts := 0
	for {
		wait := checkPeriod
		if message := c.ask(ctx); message == "" {
			doubts = 0
			c.note(health{ok: true, message: "the cluster's API server is ready"})
		} else if doubts++; doubts == 1 {
			wait = doubtPeriod
		} else {
			c.note(health{message: message})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.clock.After(wait):
		}
	}
}

// note keeps an answer, and tells if it is another than the last.
func (c *checker) note(h health) {
	if last := c.last.Swap(&h); last == nil || *last != h {
		c.changed()
	}
}

// ask returns what is wrong, in words that stay the same as long as it does.
func (c *checker) ask(ctx context.Context) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return "the cluster's API server cannot be asked whether it is ready: " + err.Error()
	}
	response, err := c.client.Do(request)
	if err != nil {
		return "the cluster's API server does not answer: " + stable(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return ""
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	return fmt.Sprintf("the cluster's API server says that it is not ready: %s: %s", response.Status, placement.Cut(failing(string(body)), longestComplaint))
}

// port is that of an address; our own is another at each try.
var port = regexp.MustCompile(`:\d+\b`)

// stable is why there was no answer, without what changes from one try to the next: ports, times, the number of bytes.
func stable(err error) string {
	var (
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
		number      syscall.Errno
		timed       interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &name):
		return "its name " + name.Name + " cannot be resolved"
	case errors.As(err, &certificate):
		var invalid x509.CertificateInvalidError
		if errors.As(certificate.Err, &invalid) && invalid.Reason == x509.Expired {
			return "its certificate has expired or is not valid yet"
		}
		return "its certificate is not accepted: " + certificate.Err.Error()
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &timed) && timed.Timeout():
		return "no answer within " + answerWithin.String()
	}
	last := err
	for next := errors.Unwrap(last); next != nil; next = errors.Unwrap(last) {
		last = next
	}
	return port.ReplaceAllString(last.Error(), "")
}

// failing is what of the checks' list has failed.
func failing(body string) string {
	var lines []string
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "[+]") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, " ")
}
