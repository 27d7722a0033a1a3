package rollup_test

import (
	"fmt"
	"testing"

	"github.com/fleetwright/fleetwright/internal/placement/rollup"
)

func BenchmarkStatusOf3000FailingClusters(b *testing.B) {
	in := input(external)
	for i := range 3000 {
		in.Bindings = append(in.Bindings, failing(fmt.Sprintf("cluster-%04d", i), 100, 500))
	}
	for b.Loop() {
		rollup.Status(in)
	}
}
