// Copyright The Fleetwright Authors.
// SPDX-License-Identifier: Apache-2.0

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

// Alive reports whether the process is still there. A zombie, which only waits for its parent to notice, is not.
func (id Identity) Alive() bool {
	state, ok := id.state()
	return ok && state != 'Z' && state != 'X'
}

// Stopped reports whether the process is there and stopped by a signal.
func (id Identity) Stopped() bool {
	state, ok := id.state()
	return ok && (state == 'T' || state == 't')
}

func (id Identity) state() (byte, bool) {
	if id.PID <= 0 {
		return 0, false
	}
	stat, err := readStat(id.PID)
	if err != nil || stat.startTime != id.StartTime {
		return 0, false
	}
	boot, err := bootID()
	return stat.state, err == nil && boot == id.BootID
}

// stat is what this package needs of /proc/PID/stat.
type stat struct {
	state     byte
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
	const startTimeAfterName = 19 // field 22 of the line
	_, name, found := strings.Cut(line, "(")
	end := strings.LastIndexByte(name, ')')
	if !found || end < 0 {
		return stat{}, errors.New("no program name in its stat line")
	}
	fields := strings.Fields(name[end+1:])
	if len(fields) <= startTimeAfterName {
		return stat{}, fmt.Errorf("its stat line has only %d fields after the program name", len(fields))
	}
	start, err := strconv.ParseUint(fields[startTimeAfterName], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("start time in its stat line: %w", err)
	}
	return stat{state: fields[0][0], startTime: start}, nil
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the kernel's boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}
