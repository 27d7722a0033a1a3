package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// tailBytes is how much of the end of a log is searched for its last lines.
const tailBytes = 1 << 20

// Logs writes the last lines of a process's log, all if lines is negative. With follow it goes on with what is added,
// until the context ends.
func Logs(ctx context.Context, dir, name string, lines int, follow bool, out io.Writer) error {
	s, err := View(dir)
	if err != nil {
		return err
	}
	p := s.Process(name)
	if p == nil {
		return unknownProcess(s, name)
	}
	file, err := os.Open(p.Log)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer file.Close()
	if lines >= 0 {
		if _, err := io.WriteString(out, lastLines(file, lines)); err != nil {
			return fmt.Errorf("writing the log of %s: %w", name, err)
		}
	} else if _, err := io.Copy(out, file); err != nil {
		return fmt.Errorf("writing the log of %s: %w", name, err)
	}
	if !follow {
		return nil
	}
	err = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
		_, err := io.Copy(out, file)
		return false, err
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("following the log of %s: %w", name, err)
	}
	return nil
}

// logTail returns the last lines of a log, or why there are none.
func logTail(path string, lines int) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	return lastLines(file, lines)
}

// lastLines returns the last lines of a file and leaves the file at its end.
func lastLines(file io.ReadSeeker, lines int) string {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err.Error()
	}
	if _, err := file.Seek(max(0, size-tailBytes), io.SeekStart); err != nil {
		return err.Error()
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	rest := strings.TrimSuffix(string(content), "\n")
	all := strings.Split(rest, "\n")
	if rest == "" || lines == 0 {
		return ""
	}
	return strings.Join(all[max(0, len(all)-lines):], "\n") + "\n"
}
