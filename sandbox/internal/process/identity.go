package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Identity tells one process from all others that ever had its number: the kernel hands numbers out again, but not at
// the same tick after the same boot.
type Identity struct {
	// PID is the process's number.
	PID int `json:"pid"`
	// StartTime is when the process started, in clock ticks after boot.
	StartTime uint64 `json:"startTime"`
	// BootID is the kernel's name for the boot that the start time counts from.
	BootID string `json:"bootID"`
}

// Identify returns the identity of the process that has a number now.
func Identify(pid int) (Identity, error) {
	stat, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	boot, err := bootID()
	if err != nil {
		return Identity{}, err
	}
	return Identity{PID: pid, StartTime: stat.startTime, BootID: boot}, nil
}

// Alive reports whether the process is still there. A zombie, which only waits for its parent to notice, is not, once all
// its threads have ended: until then they hold its files and its ports.
func (id Identity) Alive() bool {
	stat, ok := id.stat()
	return ok && stat.runs()
}

func (s stat) runs() bool { return s.state != 'X' && (s.state != 'Z' || s.threads > 1) }

// groupRuns reports whether a process of the group that the process leads, or led, is there. The kernel hands no number
// out again while a group bears it: unless another process has it, the group is the one that the process led.
func (id Identity) groupRuns() (bool, error) {
	if now, err := readStat(id.PID); err == nil && now.startTime != id.StartTime {
		return false, nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false, fmt.Errorf("looking up the processes of group %d: %w", id.PID, err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil && s.group == id.PID && s.runs() {
			return true, nil
		}
	}
	return false, nil
}

// Stopped reports whether the process is there and stopped by a signal.
func (id Identity) Stopped() bool {
	stat, ok := id.stat()
	return ok && (stat.state == 'T' || stat.state == 't')
}

// stat is what the kernel tells of the process; false where it is gone.
func (id Identity) stat() (stat, bool) {
	if id.PID <= 0 {
		return stat{}, false
	}
	now, err := readStat(id.PID)
	if err != nil || now.startTime != id.StartTime {
		return stat{}, false
	}
	boot, err := bootID()
	return now, err == nil && boot == id.BootID
}

// stat is what this package needs of /proc/PID/stat.
type stat struct {
	state     byte
	group     int
	threads   int // that have not ended
	startTime uint64
}

func readStat(pid int) (stat, error) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, fmt.Errorf("looking up process %d: %w", pid, err)
	}
	s, err := parseStat(string(line))
	if err != nil {
		return stat{}, fmt.Errorf("looking up process %d: %w", pid, err)
	}
	return s, nil
}

// parseStat reads a line of /proc/PID/stat. The second field is the program's name in parentheses; as the name may
// itself hold spaces and parentheses, fields are counted from the last closing one.
func parseStat(line string) (stat, error) {
	const groupAfterName, threadsAfterName, startTimeAfterName = 2, 17, 19 // fields 5, 20 and 22 of the line
	_, name, found := strings.Cut(line, "(")
	end := strings.LastIndexByte(name, ')')
	if !found || end < 0 {
		return stat{}, errors.New("no program name in its stat line")
	}
	fields := strings.Fields(name[end+1:])
	if len(fields) <= startTimeAfterName {
		return stat{}, fmt.Errorf("its stat line has only %d fields after the program name", len(fields))
	}
	group, err := strconv.Atoi(fields[groupAfterName])
	if err != nil {
		return stat{}, fmt.Errorf("process group in its stat line: %w", err)
	}
	threads, err := strconv.Atoi(fields[threadsAfterName])
	if err != nil {
		return stat{}, fmt.Errorf("number of threads in its stat line: %w", err)
	}
	start, err := strconv.ParseUint(fields[startTimeAfterName], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("start time in its stat line: %w", err)
	}
	return stat{state: fields[0][0], group: group, threads: threads, startTime: start}, nil
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the kernel's boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}
