// Copyright The Fleetwright Authors.
// SPDX-License-Identifier: Apache-2.0

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

// awaitReady waits until a process says that it is ready. It fails as soon as the process ends.
func awaitReady(ctx context.Context, p state.Process) error {
	if p.Ready == "" {
		return nil
	}
	client, err := readinessClient(p)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	var last error
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if !p.Alive() {
			return false, errors.New("it has ended")
		}
		last = askReady(ctx, client, p.Ready)
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	if last != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w; last answer: %w", err, last)
	}
	return fmt.Errorf("waiting for %s to be ready: %w\nThe end of its log %s:\n%s", p.Name, err, p.Log, logTail(p.Log, 15))
}

// readinessClient returns a client for asking a process whether it is ready.
func readinessClient(p state.Process) (*http.Client, error) {
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
	return &http.Client{Transport: transport, Timeout: 2 * time.Second}, nil
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
