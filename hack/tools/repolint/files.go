package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

const (
	// longestFile is the most lines a file may have; one that has more is about more than one thing.
	longestFile = 700
	// longestMain is the same for a program's main.go: it turns flags into options of a package under internal.
	longestMain = 80
)

// vagueNames say nothing of what a package is for, and so gather everything.
var vagueNames = []string{"util", "utils", "common", "helper", "helpers", "manager", "misc"}

// clockFunctions read the clock of the machine, or wait for it.
var clockFunctions = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// checkFile returns what is wrong with a file of the repository.
func checkFile(name string, content []byte) []string {
	var problems []string
	report := func(line int, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s:%d: ", name, line)+fmt.Sprintf(format, args...))
	}
	lines := bytes.Count(content, []byte("\n"))
	if lines > longestFile {
		report(longestFile, "has %d lines, the most is %d", lines, longestFile)
	}
	if strings.HasPrefix(name, "cmd/") && path.Base(name) == "main.go" && lines > longestMain {
		report(longestMain, "has %d lines, the most for a main.go is %d: move what it does to internal", lines, longestMain)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
	if err != nil {
		report(1, "cannot be parsed: %v", err)
		return problems
	}
	if slices.Contains(vagueNames, strings.TrimSuffix(file.Name.Name, "_test")) {
		report(files.Position(file.Name.Pos()).Line, "package %s: name it by what it is for", file.Name.Name)
	}
	forbidden, why := forbiddenClock(name)
	if len(forbidden) == 0 || !importsTime(file) {
		return problems
	}
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(forbidden, selector.Sel.Name) {
			report(files.Position(selector.Pos()).Line, "time.%s: %s", selector.Sel.Name, why)
		}
		return true
	})
	return problems
}

// forbiddenClock returns the functions of package time that a file may not use, and why.
func forbiddenClock(name string) (functions []string, why string) {
	if strings.HasSuffix(name, "_test.go") {
		return nil, ""
	}
	if l := layerOf(path.Dir(name)); l != nil && l.pure {
		return clockFunctions, "what decides is told the time by its caller, so that every decision can be repeated"
	}
	if strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "cmd/") {
		return []string{"Sleep"}, "wait for what is waited for, with a context"
	}
	return nil, ""
}

func importsTime(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"time"` && i.Name == nil })
}
