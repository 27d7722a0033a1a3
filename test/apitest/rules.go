package apitest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fleetwright/fleetwright/test/framework"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// refusals are what the API server said in the cases that it was to refuse.
var refusals struct {
	sync.Mutex
	texts []string
}

func noteRefusal(err error) {
	refusals.Lock()
	defer refusals.Unlock()
	refusals.texts = append(refusals.texts, err.Error())
}

// RunWithRules runs the tests of a package with an API server, and then fails where a rule of a group's definitions refused
// nothing in any of them: a rule without a case is one that nobody has seen work. It returns the exit code. A run of some of
// the tests is not judged.
func RunWithRules(m *testing.M, group string, config **rest.Config) int {
	code := framework.RunWithAPIServer(m, config)
	if code != 0 || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.list").Value.String() != "" {
		return code
	}
	untried, err := untriedRules(group)
	if err != nil {
		fmt.Fprintf(os.Stderr, "read the rules of %s: %v\n", group, err)
		return 1
	}
	for _, rule := range untried {
		fmt.Fprintf(os.Stderr, "no case is refused by the rule: %s\n", rule)
		code = 1
	}
	return code
}

// untriedRules are the messages of a group's rules that are in no refusal.
func untriedRules(group string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(framework.Root(), "config", "crd", "hub", group+"_*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%d definitions found: %w", len(files), err)
	}
	var untried []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &crd); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		for _, v := range crd.Spec.Versions {
			eachRule(v.Schema.OpenAPIV3Schema, func(r apiextensionsv1.ValidationRule) {
				said := messageOf(r)
				if !slices.ContainsFunc(refusals.texts, func(text string) bool { return strings.Contains(text, said) }) && !slices.Contains(untried, said) {
					untried = append(untried, said)
				}
			})
		}
	}
	return untried, nil
}

func eachRule(s *apiextensionsv1.JSONSchemaProps, visit func(apiextensionsv1.ValidationRule)) {
	if s == nil {
		return
	}
	for _, r := range s.XValidations {
		visit(r)
	}
	for _, p := range s.Properties {
		eachRule(&p, visit)
	}
	if s.Items != nil {
		eachRule(s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil {
		eachRule(s.AdditionalProperties.Schema, visit)
	}
}

var literals = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// messageOf is what a refusal by a rule says: its message, the longest text in the expression that makes it, or the rule.
func messageOf(r apiextensionsv1.ValidationRule) string {
	if r.MessageExpression == "" {
		if r.Message == "" {
			return r.Rule
		}
		return strings.TrimSpace(r.Message)
	}
	longest := ""
	for _, l := range literals.FindAllString(r.MessageExpression, -1) {
		if len(l) > len(longest) {
			longest = l
		}
	}
	return strings.Trim(longest, `'"`)
}
