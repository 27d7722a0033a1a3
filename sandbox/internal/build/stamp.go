package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// stampFile is the name of the file beside a program that tells what it was built from.
const stampFile = ".stamp"

// stamp is a fingerprint of all that a build depends on.
type stamp string

// newStamp fingerprints the files of a target's module and everything else that the build depends on.
func newStamp(module string, inputs ...string) (stamp, error) {
	hash := sha256.New()
	for _, input := range inputs {
		fmt.Fprintf(hash, "input %q\n", input)
	}
	files, err := filepath.Glob(filepath.Join(module, "*"))
	if err != nil {
		return "", fmt.Errorf("listing the files of module %s: %w", module, err)
	}
	found := false
	for _, file := range files {
		name := filepath.Base(file)
		if name != "go.mod" && name != "go.sum" && !strings.HasSuffix(name, ".go") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading what to build: %w", err)
		}
		found = found || name == "go.mod"
		fmt.Fprintf(hash, "file %q %d\n%s", name, len(content), content)
	}
	if !found {
		return "", fmt.Errorf("no Go module in %s", module)
	}
	return stamp(hex.EncodeToString(hash.Sum(nil))), nil
}

// matches reports whether a program is there and was built from the same.
func (s stamp) matches(folder, program string) bool {
	content, err := os.ReadFile(filepath.Join(folder, stampFile))
	if err != nil || strings.TrimSpace(string(content)) != string(s) {
		return false
	}
	_, err = os.Stat(program)
	return err == nil
}

// write records that the program in a folder was built from this.
func (s stamp) write(folder string) error {
	path := filepath.Join(folder, stampFile)
	next := path + ".new"
	err := os.WriteFile(next, []byte(s+"\n"), 0o644)
	if err = errors.Join(err, os.Rename(next, path)); err != nil {
		return fmt.Errorf("recording the build: %w", err)
	}
	return nil
}
