package policy

import (
	"regexp"
	"strings"

	policyv1alpha1 "github.com/fleetwright/fleetwright/api/policy/v1alpha1"
)

// image is the name of an image in its parts.
type image struct {
	registry   string // empty where none is named
	repository string
	tag        string // without a colon
	digest     string // without the sign before it
}

// The parts of an image's name, as registries and container runtimes take them.
const (
	hostPattern   = `(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?`
	namePattern   = `[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*`
	tagPattern    = `[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}`
	digestPattern = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}`
)

var (
	imageName  = regexp.MustCompile(`^(?:` + hostPattern + `/)?` + namePattern + `(?:/` + namePattern + `)*(?::` + tagPattern + `)?(?:@` + digestPattern + `)?$`)
	onlyHost   = regexp.MustCompile(`^` + hostPattern + `$`)
	onlyDigest = regexp.MustCompile(`^` + digestPattern + `$`)
)

// parseImage takes an image's name apart. What is before the first slash is a registry if it looks like a host: it has a dot or a port, or
// is localhost.
func parseImage(text string) (image, bool) {
	if !imageName.MatchString(text) {
		return image{}, false
	}
	var i image
	text, i.digest, _ = strings.Cut(text, "@")
	if first, rest, slashed := strings.Cut(text, "/"); slashed && isHost(first) {
		i.registry, text = first, rest
	}
	i.repository, i.tag, _ = strings.Cut(text, ":")
	return i, true
}

func isHost(text string) bool {
	return onlyHost.MatchString(text) && (text == "localhost" || strings.ContainsAny(text, ".:"))
}

func (i image) String() string {
	text := i.repository
	if i.registry != "" {
		text = i.registry + "/" + text
	}
	if i.tag != "" {
		text += ":" + i.tag
	}
	if i.digest != "" {
		text += "@" + i.digest
	}
	return text
}

// changeImages changes the image that is named, or those of all containers.
func changeImages(o *policyv1alpha1.ImageOverrider, content map[string]any) *trouble {
	switch {
	case o.Operator == policyv1alpha1.OverrideRemove && o.Value != "":
		return wrong("", "value is given to remove a part of an image; take it off, or use replace")
	case o.Operator != policyv1alpha1.OverrideRemove && o.Value == "":
		return wrong("", "value is needed to %s a part of an image", o.Operator)
	}
	if o.Predicate != nil {
		value, set, problem := find(content, string(o.Predicate.Path))
		if problem != nil {
			return problem
		}
		name, isText := value.(string)
		if !isText {
			return wrong(string(o.Predicate.Path), "there is no text in the object, which an image's name is; correct predicate.path")
		}
		changed, problem := changeImage(o, name, string(o.Predicate.Path))
		if problem == nil {
			set(changed)
		}
		return problem
	}
	containers, problem := containersOf(content)
	if problem != nil {
		return problem
	}
	for _, c := range containers {
		name, isText := c.fields["image"].(string)
		if !isText || name == "" {
			continue // somebody in the cluster puts one in
		}
		changed, problem := changeImage(o, name, c.path+"/image")
		if problem != nil {
			return problem
		}
		c.fields["image"] = changed
	}
	return nil
}

func changeImage(o *policyv1alpha1.ImageOverrider, name, path string) (string, *trouble) {
	i, ok := parseImage(name)
	if !ok {
		return "", wrong(path, "what is there is no image's name, such as registry.example.com/team/app:1.2")
	}
	switch o.Component {
	case policyv1alpha1.ImageRegistry:
		i.registry = edit(o, i.registry)
		if first, _, _ := strings.Cut(i.registry, "/"); i.registry != "" && !isHost(first) {
			return "", wrong(path, "value makes no registry of it: one has a dot or a port, or is localhost")
		}
	case policyv1alpha1.ImageRepository:
		if o.Operator == policyv1alpha1.OverrideRemove {
			return "", wrong(path, "an image cannot be without a repository; replace it")
		}
		i.repository = edit(o, i.repository)
	case policyv1alpha1.ImageTag:
		if problem := i.changeTag(o, path); problem != nil {
			return "", problem
		}
	default:
		return "", wrong(path, "component is %q; it can be Registry, Repository or Tag", o.Component)
	}
	changed := i.String()
	if again, ok := parseImage(changed); !ok || o.Component != policyv1alpha1.ImageRegistry && again != i {
		return "", wrong(path, "value makes no image's name of it, such as registry.example.com/team/app:1.2; a repository is in small letters")
	}
	return changed, nil
}

// changeTag changes what says which edition of an image it is: a tag, a digest, or both, of which the digest counts.
func (i *image) changeTag(o *policyv1alpha1.ImageOverrider, path string) *trouble {
	value := strings.TrimLeft(o.Value, ":@")
	switch {
	case o.Operator == policyv1alpha1.OverrideRemove:
		i.tag, i.digest = "", ""
	case o.Operator == policyv1alpha1.OverrideAdd && i.digest != "":
		return wrong(path, "the image has a digest, to which nothing can be added; use replace")
	case o.Operator == policyv1alpha1.OverrideAdd && (i.tag != "" || !onlyDigest.MatchString(value)):
		i.tag += o.Value
		if i.tag == o.Value {
			i.tag = value
		}
	case onlyDigest.MatchString(value):
		i.tag, i.digest = "", value
	default:
		i.tag, i.digest, _ = strings.Cut(value, "@")
	}
	return nil
}

// edit changes a part as a text.
func edit(o *policyv1alpha1.ImageOverrider, part string) string {
	switch o.Operator {
	case policyv1alpha1.OverrideRemove:
		return ""
	case policyv1alpha1.OverrideAdd:
		return part + o.Value
	default:
		return o.Value
	}
}
