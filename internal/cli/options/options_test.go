package options

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	if got := Explain(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "MemberCluster"}}); !strings.Contains(got.Error(), "--context") {
		t.Errorf("a cluster that is no hub: got %q", got)
	}
	other := errors.New("other")
	if got := Explain(other); !errors.Is(got, other) || got.Error() != "other" {
		t.Errorf("got %q, want it as it was", got)
	}
}
