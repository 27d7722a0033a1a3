package lock

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSecondIsRefusedWhileFirstHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "lock")
	first, err := Try(path, "sandbox up")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Try(path, "sandbox up")
	if !errors.Is(err, ErrHeld) {
		t.Fatalf("got %v, want ErrHeld", err)
	}
	for _, want := range []string{"process ", "sandbox up", path} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not mention %q", err, want)
		}
	}
	if _, err := Wait(t.Context(), path, "sandbox kill", time.Millisecond); !errors.Is(err, ErrHeld) {
		t.Errorf("waiting: got %v, want ErrHeld", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	second, err := Wait(t.Context(), path, "sandbox kill", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestLockOfARemovedFileDoesNotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path, "sandbox down")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if current, err := first.isCurrent(path); err != nil || current {
		t.Errorf("a lock on a removed file counts as current (%v)", err)
	}
	second, err := Try(path, "sandbox up")
	if err != nil {
		t.Fatal(err)
	}
	if current, err := second.isCurrent(path); err != nil || !current {
		t.Errorf("a fresh lock does not count as current (%v)", err)
	}
	if err := errors.Join(first.Release(), second.Release()); err != nil {
		t.Fatal(err)
	}
}
