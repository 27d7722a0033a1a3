// Package report tells people on a terminal, or readers of a log, how far a long command is.
package report

import (
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// redrawEvery is how often a status is drawn again on a terminal at most.
	redrawEvery = 100 * time.Millisecond
	// repeatEvery is how often a status is written where lines cannot be drawn over.
	repeatEvery = 15 * time.Second
)

// Report writes lines that stay and a status that changes. It may be used by several goroutines.
type Report struct {
	out      io.Writer
	terminal bool
	now      func() time.Time

	mu         sync.Mutex
	lastStatus time.Time
	drawn      bool
}

// New returns a report to a file, which may be a terminal.
func New(out interface {
	io.Writer
	Fd() uintptr
}) *Report {
	return &Report{out: out, terminal: term.IsTerminal(int(out.Fd())), now: time.Now}
}

// Line writes a line that stays.
func (r *Report) Line(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write(format+"\n", args...)
}

// Status replaces the last status. On a terminal it is drawn over; elsewhere it is written as a line now and then.
func (r *Report) Status(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if r.terminal {
		if now.Sub(r.lastStatus) < redrawEvery {
			return
		}
		r.lastStatus = now
		r.write(format, args...)
		r.drawn = true
		return
	}
	if r.lastStatus.IsZero() {
		// What ends quickly needs no status at all.
		r.lastStatus = now
		return
	}
	if now.Sub(r.lastStatus) >= repeatEvery {
		r.lastStatus = now
		r.write(format+"\n", args...)
	}
}

// Clear removes a drawn status, for others to write to the terminal.
func (r *Report) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write("")
}

// write clears a drawn status and writes. That nobody reads is no reason to fail, so errors are dropped.
func (r *Report) write(format string, args ...any) {
	if r.drawn {
		_, _ = io.WriteString(r.out, "\r\x1b[K")
		r.drawn = false
	}
	_, _ = fmt.Fprintf(r.out, format, args...)
}
