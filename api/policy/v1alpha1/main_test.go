package v1alpha1_test

import (
	"os"
	"testing"

	"github.com/fleetwright/fleetwright/test/apitest"
	"k8s.io/client-go/rest"
)

const group = "policy.one.alibabacloud.com"

// hub is an API server with the hub's definitions, shared by the tests of this package.
var hub *rest.Config

func TestMain(m *testing.M) { os.Exit(apitest.RunWithRules(m, group, &hub)) }
