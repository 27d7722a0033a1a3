package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// checkReasons returns the condition reasons of the API that no page for users explains: who meets one looks it up there.
func checkReasons(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "api", "*", "*", "conditions.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("find the API's conditions: %d files: %w", len(files), err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("find the pages for users: %d files: %w", len(pages), err)
	}
	var docs strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		docs.Write(text)
	}
	var problems []string
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		found, err := unexplained(filepath.ToSlash(relative), content, docs.String())
		if err != nil {
			return nil, err
		}
		problems = append(problems, found...)
	}
	return problems, nil
}

// unexplained returns the constants of a file whose names begin with Reason and whose values are not in the docs.
func unexplained(name string, content []byte, docs string) ([]string, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	var problems []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, constant := range spec.Names {
			if !strings.HasPrefix(constant.Name, "Reason") || i >= len(spec.Values) {
				continue
			}
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok {
				continue
			}
			reason, err := strconv.Unquote(literal.Value)
			if err == nil && !regexp.MustCompile(`\b`+regexp.QuoteMeta(reason)+`\b`).MatchString(docs) {
				problems = append(problems, fmt.Sprintf("%s:%d: no page in docs says what reason %s means; docs/status.md is the place", name, files.Position(constant.Pos()).Line, reason))
			}
		}
		return false
	})
	return problems, nil
}
