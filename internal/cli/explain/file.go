package explain

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/cli/options"
	"github.com/fleetwright/fleetwright/internal/placement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// maxFile is how much of a file is read, in bytes: more than any object may have.
const maxFile = 4 << 20

func explainFile(ctx context.Context, o *options.Options, file string) error {
	content, err := read(o, file)
	if err != nil {
		return err
	}
	kinds, p, err := parse(content)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := complete(o, kinds, p); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	hub, err := o.Hub()
	if err != nil {
		return err
	}
	there := kinds.NewPlacement()
	switch err := hub.Get(ctx, client.ObjectKeyFromObject(p), there); {
	case p.GetName() == "" || apierrors.IsNotFound(err):
		there = nil
	case err != nil:
		return fmt.Errorf("read %s, to tell what is placed already: %w", title(kinds, p.GetNamespace(), p.GetName()), options.Explain(err))
	}
	return explain(ctx, o, hub, kinds, p, there)
}

func read(o *options.Options, file string) ([]byte, error) {
	from := o.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("read the placement: %w", err)
		}
		defer opened.Close()
		from = opened
	}
	content, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the placement from %s: %w", file, err)
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s has more than %d MB; give a file with the placement alone", file, maxFile>>20)
	}
	return content, nil
}

// parse returns the one placement that is among the objects of a file.
func parse(content []byte) (*placement.Kinds, placementv1.PlacementObject, error) {
	var kinds *placement.Kinds
	var found placementv1.PlacementObject
	for reader := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("split it into objects: %w", err)
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, nil, fmt.Errorf("it is no YAML: %w", err)
		}
		group, err := schema.ParseGroupVersion(head.APIVersion)
		if err != nil || group.Group != placementv1.GroupVersion.Group {
			continue
		}
		for _, k := range placement.AllKinds() {
			if k.Placement != head.Kind {
				continue
			}
			if found != nil {
				return nil, nil, errors.New("it has several placements; give one at a time")
			}
			kinds, found = k, k.NewPlacement()
			if err := yaml.UnmarshalStrict(document, found); err != nil {
				return nil, nil, fmt.Errorf("the %s cannot be read: %w", head.Kind, err)
			}
		}
	}
	if found == nil {
		return nil, nil, errors.New("it has no ClusterResourcePlacement and no ResourcePlacement")
	}
	return kinds, found, nil
}

// complete gives a placement the namespace that it would be applied to, and refuses what the API server would, as far as the
// choice of clusters is concerned.
func complete(o *options.Options, kinds *placement.Kinds, p placementv1.PlacementObject) error {
	switch given := o.Namespace(); {
	case !kinds.Namespaced && given != "":
		return fmt.Errorf("a %s has no namespace; leave -n %s out", kinds.Placement, given)
	case kinds.Namespaced && given != "" && p.GetNamespace() != "" && given != p.GetNamespace():
		return fmt.Errorf("the namespace of the placement is %q and not %q, as -n says", p.GetNamespace(), given)
	case kinds.Namespaced && p.GetNamespace() == "":
		namespace, _, err := o.Flags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return fmt.Errorf("find the current namespace: %w", err)
		}
		p.SetNamespace(namespace)
	}
	policy := p.PlacementSpec().Policy
	if policy.Type() == placementv1.PickNPlacementType && policy.NumberOfClusters == nil {
		return errors.New("numberOfClusters must be set when placementType is PickN")
	}
	return nil
}
