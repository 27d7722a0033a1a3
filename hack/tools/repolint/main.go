// Command repolint checks what no general linter knows of this repository: in which direction its packages import each
// other, that packages which decide do no I/O and read no clock, how long files may be, and that users find every condition
// reason explained. `make lint` calls it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", ".", "the repository's root")
	flag.Parse()
	problems, err := check(context.Background(), *root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "repolint:", err)
		os.Exit(2)
	}
	for _, problem := range problems {
		fmt.Println(problem)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// check returns what is wrong in the repository, a line for each thing.
func check(ctx context.Context, root string) ([]string, error) {
	packages, err := load(ctx, root)
	if err != nil {
		return nil, err
	}
	problems := checkImports(packages)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == "bin" || (strings.HasPrefix(name, ".") && path != root)) {
			return filepath.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "zz_generated.") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		problems = append(problems, checkFile(filepath.ToSlash(relative), content)...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the Go files: %w", err)
	}
	reasons, err := checkReasons(root)
	if err != nil {
		return nil, err
	}
	problems = append(problems, reasons...)
	slices.Sort(problems)
	return problems, nil
}

// goPackage is what `go list` says of a package.
type goPackage struct {
	ImportPath string
	Imports    []string
}

// load lists the packages of the main module and all that they depend on.
func load(ctx context.Context, root string) ([]goPackage, error) {
	command := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	command.Dir, command.Stderr = root, os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		packages = append(packages, p)
	}
}
