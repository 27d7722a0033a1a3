// Package lock keeps two runs of the program from working on the same folder at once.
package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrHeld is the error when another process holds the lock.
var ErrHeld = errors.New("another command is at work there")

// Lock is a lock file that this process holds. The kernel releases it when the process ends, however it ends.
type Lock struct {
	file *os.File
}

// Try takes the lock of a file, which is created with its folder if need be. If another process holds it, the error
// is ErrHeld and names that process and what it does. The purpose is what the others will be told of this process.
func Try(path, purpose string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("creating the folder of lock file %s: %w", path, err)
	}
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("opening lock file %s: %w", path, err)
		}
		l := &Lock{file: file}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			holder, _ := io.ReadAll(io.LimitReader(file, 200))
			if closeErr := file.Close(); closeErr != nil {
				return nil, fmt.Errorf("closing lock file %s: %w", path, closeErr)
			}
			if errors.Is(err, unix.EWOULDBLOCK) {
				// Nothing is written yet if it has only just taken the lock.
				who := cmp.Or(strings.TrimSpace(string(holder)), "one that has just begun")
				return nil, fmt.Errorf("%w: %s (lock file %s)", ErrHeld, who, path)
			}
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		current, err := l.isCurrent(path)
		if err == nil && current {
			err = l.describe(purpose)
		}
		if err == nil && current {
			return l, nil
		}
		if err := errors.Join(err, l.Release()); err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		// Whoever held it removed the file meanwhile, so others lock another file of that name: again.
	}
}

// Wait takes the lock of a file as Try does, but waits for whoever holds it, at most for the time given.
func Wait(ctx context.Context, path, purpose string, timeout time.Duration) (*Lock, error) {
	var held *Lock
	var last error
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		held, last = Try(path, purpose)
		if errors.Is(last, ErrHeld) {
			return false, nil
		}
		return last == nil, last
	})
	if err != nil && last != nil {
		return nil, last
	}
	return held, err
}

// Release gives the lock up.
func (l *Lock) Release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("releasing lock file %s: %w", l.file.Name(), err)
	}
	return nil
}

// isCurrent reports whether the locked file is still the one that the path leads to.
func (l *Lock) isCurrent(path string) (bool, error) {
	locked, err := l.file.Stat()
	if err != nil {
		return false, fmt.Errorf("looking at the locked file: %w", err)
	}
	there, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking at the lock file: %w", err)
	}
	return os.SameFile(locked, there), nil
}

func (l *Lock) describe(purpose string) error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("emptying the lock file: %w", err)
	}
	if _, err := l.file.WriteAt(fmt.Appendf(nil, "process %d, %s\n", os.Getpid(), purpose), 0); err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	return nil
}
