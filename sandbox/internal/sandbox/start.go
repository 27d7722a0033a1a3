package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fleetwright/fleetwright/sandbox/internal/process"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// askTimeout is how long a process may take to say whether it is ready.
const askTimeout = 5 * time.Second

// ensure starts a process that does not run and waits until it is ready.
func (s *Sandbox) ensure(ctx context.Context, spec state.Process) error {
	p, err := s.start(spec)
	if err != nil {
		return err
	}
	return awaitReady(ctx, p)
}

// start starts a process that does not run, lets one that is stopped go on, and records what runs. It returns what
// runs, which may have been started from another description of the process.
func (s *Sandbox) start(spec state.Process) (state.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.state.Process(spec.Name); old != nil && old.Alive() {
		if !old.Stopped() {
			return *old, nil
		}
		if _, err := process.Signal(old.Identity, syscall.SIGCONT); err != nil {
			return *old, fmt.Errorf("letting %s go on: %w", old.Name, err)
		}
		return *old, nil
	}
	var err error
	if spec.Program, err = fingerprint(spec.Command[0]); err != nil {
		return spec, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return spec, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	spec.Identity, err = process.Start(process.Command{Args: spec.Command, Env: spec.Env, Dir: spec.Dir, Log: spec.Log})
	if err != nil {
		return spec, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	s.state.SetProcess(spec)
	return spec, s.save()
}

// fingerprint tells one build of a program from another.
func fingerprint(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("looking at its program: %w", err)
	}
	return fmt.Sprintf("%d bytes of %s", info.Size(), info.ModTime().UTC().Format(time.RFC3339Nano)), nil
}

// awaitReady waits until a process says that it is ready.
func awaitReady(ctx context.Context, p state.Process) error {
	if p.Ready == "" {
		return nil
	}
	client, err := readinessClient(p)
	if err != nil {
		return err
	}
	return await(ctx, p, func(ctx context.Context) error { return askReady(ctx, client, p.Ready) })
}

// await asks again and again until the answer is good. It fails as soon as the process ends.
func await(ctx context.Context, p state.Process, ask func(context.Context) error) error {
	var last error
	ended := false
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if ended = !p.Alive(); ended {
			return false, errors.New("it has ended")
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		answer := ask(ctx)
		// An answer that was cut off says less than the one before.
		if answer == nil || last == nil || ctx.Err() == nil {
			last = answer
		}
		return answer == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ended:
		return fmt.Errorf("waiting for %s to be ready: %w%s\nThe end of its log %s:\n%s",
			p.Name, err, hint(p.Log), p.Log, logTail(p.Log, 15))
	case last != nil:
		return fmt.Errorf("waiting for %s to be ready: %w (last answer: %w; log %s)", p.Name, context.Cause(ctx), last, p.Log)
	default:
		return fmt.Errorf("waiting for %s to be ready: %w", p.Name, context.Cause(ctx))
	}
}

// hint explains a failure that the end of a log does not tell the cause of.
func hint(log string) string {
	if !strings.Contains(logTail(log, 100), "too many open files") {
		return ""
	}
	return "\nProbably the inotify instances that one user may have are used up. Run fewer members (others may be bare), or raise\n" +
		"the limit: sysctl fs.inotify.max_user_instances=1024"
}

// readinessClient returns a client for asking a process whether it is ready.
func readinessClient(p state.Process) (*http.Client, error) {
	// Asking once in a while is not worth a connection that stays.
	transport := &http.Transport{DisableKeepAlives: true}
	if p.ReadyCAFile != "" {
		ca, err := os.ReadFile(p.ReadyCAFile)
		if err != nil {
			return nil, fmt.Errorf("preparing to ask whether %s is ready: %w", p.Name, err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("preparing to ask whether %s is ready: no certificate in %s", p.Name, p.ReadyCAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport}, nil
}

func askReady(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking whether it is ready: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking whether it is ready: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return fmt.Errorf("asking %s whether it is ready: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, strings.TrimSpace(string(body)))
	}
	return nil
}
