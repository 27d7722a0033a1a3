package build

import (
	"fmt"
	"strings"
	"time"

	"github.com/fleetwright/fleetwright/sandbox/internal/report"
)

// progress counts what the Go tool says it has done.
type progress struct {
	report *report.Report
	name   string
	now    func() time.Time
	begin  time.Time

	// total is the number of packages to compile, once known.
	total      int
	compiled   int
	downloaded int
}

func newProgress(r *report.Report, name string, now func() time.Time) *progress {
	return &progress{report: r, name: name, now: now, begin: now()}
}

// line takes a line from the Go tool's standard error and reports whether it tells of progress.
func (p *progress) line(line string) bool {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.downloaded++
	case isImportPath(line):
		p.compiled++
	default:
		return false
	}
	p.report.Status("%s", p.String())
	return true
}

// String says how far the build is.
func (p *progress) String() string {
	elapsed := p.now().Sub(p.begin).Round(time.Second).String()
	if p.total == 0 {
		return fmt.Sprintf("%s: %d modules downloaded, %s", p.name, p.downloaded, elapsed)
	}
	// A package that two builds need at once may be compiled by either, so the count can pass the forecast.
	done := min(p.compiled, p.total)
	return fmt.Sprintf("%s: %d of %d packages compiled (%d%%), %s", p.name, done, p.total, 100*done/p.total, elapsed)
}

// isImportPath reports whether a line is what "go build -v" writes for a package: its import path and nothing else.
func isImportPath(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#") && !strings.HasPrefix(line, ".")
}
