package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	placementv1 "github.com/fleetwright/fleetwright/api/placement/v1"
	"github.com/fleetwright/fleetwright/internal/agent/drift"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// conflicts is how often an object is read anew, at once, because somebody else wrote it at the same moment.
	conflicts = 5
	// quiet is after how long without a repair an object counts as settled again.
	quiet = time.Minute
	// patience is how many times in a row an object is repaired at once. After that, repairs become rarer: somebody in the
	// member writes the same fields, and two who never tire would keep the API server busy for ever.
	patience = 3
)

// appliedState is what an object was when it was last applied.
type appliedState struct {
	// manifest is a hash of the manifest, owner the UID of the AppliedWork named in the object.
	manifest, owner string
	// strategy is the apply strategy by which it was applied, and whole stands for all of it where that asks for it.
	strategy, whole string
	// drift is in what it was changed in the member, undetected why that is not known.
	drift      *comparison
	undetected string
	// fingerprint stands for what of the object is ours.
	fingerprint string
	// note is what was said of it then, kept what of it was left to others.
	note string
	kept kept
	// repairs is how often in a row it was repaired, repaired when that was last, and where what was repaired then.
	repairs  int
	repaired time.Time
	where    string
}

// fought tells whether somebody in the member keeps changing the object: it has been repaired too often in a row.
func (s *appliedState) fought(now time.Time) bool {
	return s.repairs >= patience && now.Sub(s.repaired) <= quiet
}

// say is what is to be said of the object. It stays the same for as long as the fight goes on.
func (s *appliedState) say(now time.Time) string {
	if !s.fought(now) {
		return s.note
	}
	text := fmt.Sprintf("somebody in the member keeps changing %s: it is put back, but ever more seldom, every %d s in the end; let one of the two stop", s.where, int(maxBackoff.Seconds()))
	if s.note != "" {
		text = s.note + "; " + text
	}
	return text
}

// settle makes one object what its manifest says, and returns what it is then; nil where that failed.
func (p *pass) settle(ctx context.Context, m *manifest) *appliedState {
	last, known := p.memory.applied[m.key]
	same := known && last.manifest == m.hash && last.owner == string(p.owner.UID) && last.strategy == mark(&p.strategy)
	if same {
		seen := p.watches.get(m.gvr, m.key)
		if (seen.is(last.fingerprint) && (last.whole == "" || seen.whole == last.whole) && p.stillKept(last.kept, m.key, seen.object)) || p.tired(&last, seen) {
			m.live, m.note, m.drift, m.undetected = seen.object, p.say(&last), last.drift, last.undetected
			return &last
		}
	}
	wanted, err := m.object()
	if err != nil {
		m.fail(placementv1.ReasonManifestDecodingErred, "%v", err)
		return nil
	}
	defer p.locks.hold(m.key)()
	before, note, err := p.bring(ctx, m, wanted)
	if err != nil || m.reason != "" {
		p.explain(m, err)
		return nil
	}
	state := &appliedState{
		manifest: m.hash, owner: string(p.owner.UID), note: note, kept: m.kept,
		fingerprint: drift.Fingerprint(m.live, placementv1.FieldManager), strategy: mark(&p.strategy), drift: m.drift, undetected: m.undetected,
	}
	if p.whole() {
		state.whole = drift.Hash(m.live)
	}
	p.watches.put(m.gvr, m.key, m.live, state.fingerprint)
	if same {
		state.repairs, state.repaired, state.where = last.repairs, last.repaired, last.where
		p.repaired(m, state, drift.Paths(before, m.live))
	}
	m.note = p.say(state)
	return state
}

// say is what is to be said of an object now. Of a fight that has ended nothing is, as soon as that is certain.
func (p *pass) say(state *appliedState) string {
	now := p.Clock.Now()
	if state.fought(now) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lookAgain(state.repaired.Add(quiet + time.Second).Sub(now))
	}
	return state.say(now)
}

// tired tells whether an object has been repaired so often in a row that the next repair has to wait. One that is gone is
// made again at once.
func (p *pass) tired(last *appliedState, seen *sight) bool {
	if last.repairs < patience || seen == nil || seen.object == nil {
		return false
	}
	rest := last.repaired.Add(backoff(last.repairs - patience + 1)).Sub(p.Clock.Now())
	if rest <= 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lookAgain(rest)
	return true
}

// repaired takes note of a repair, if it was one: an object that others have changed elsewhere was applied for nothing.
func (p *pass) repaired(m *manifest, state *appliedState, paths []string) {
	if len(paths) == 0 {
		return
	}
	now := p.Clock.Now()
	if now.Sub(state.repaired) > quiet {
		state.repairs = 0
	}
	state.repairs++
	state.repaired, state.where = now, few(paths)
	driftRepairs.WithLabelValues(m.id.Group, m.id.Kind).Inc()
	text := fmt.Sprintf("%s was changed in the member and is as placed again, at %s", m.key, state.where)
	if madeAnew := paths[0] == drift.Whole; madeAnew {
		state.where = "all of it"
		text = fmt.Sprintf("%s was deleted in the member and has been made again", m.key)
	}
	if state.repairs <= patience {
		p.event(m.key, m.id.Version, corev1.EventTypeNormal, "DriftRepaired", "Repair", text)
	}
	if state.repairs == patience {
		p.event(m.key, m.id.Version, corev1.EventTypeWarning, "DriftContested", "Repair", m.key.String()+": "+state.say(now))
	}
}

// doesNotAnswer is said of what could not be asked.
const doesNotAnswer = "The member's API server does not answer; this is tried again (error: %s)"

// explain says why an object is not applied.
func (p *pass) explain(m *manifest, err error) {
	switch {
	case m.reason != "":
	case unreachable(err):
		m.fail(placementv1.ReasonManifestPreparing, doesNotAnswer, tell(m.key, err))
	default:
		m.fail(placementv1.ReasonManifestApplyFailed, "Failed to apply the manifest (error: %s)", tell(m.key, err))
	}
	m.live = nil
}

// unreachable tells whether an error says nothing about the object: the API server could not be asked.
func unreachable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return noAnswer(err)
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// noAnswer tells whether a request failed on its way: the connection, or the time for it.
func noAnswer(err error) bool {
	var request *url.Error
	var network net.Error
	return errors.As(err, &request) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// bring applies an object, if the Work may have it. It returns the object as it was before, nil where there was none, and
// what is to be said of it. Where the Work may not have it, the manifest has a reason afterwards.
func (p *pass) bring(ctx context.Context, m *manifest, wanted *unstructured.Unstructured) (before *unstructured.Unstructured, note string, err error) {
	client := p.resource(m.gvr, m.id.Namespace)
	for range conflicts {
		before, err = client.Get(ctx, m.id.Name, metav1.GetOptions{})
		switch {
		case unserved(err):
			p.kinds.forget()
			if _, find := p.kinds.find(ctx, m.kind()); errors.Is(find, errUnknownKind) {
				m.gvr = schema.GroupVersionResource{}
				p.unknownKind(m)
				return nil, "", nil
			}
			return nil, "", err
		case apierrors.IsNotFound(err):
			before = nil
		case err != nil:
			if !unreachable(err) {
				m.fail(placementv1.ReasonManifestFailedToFindObject, "Failed to look for the object in the member (error: %s)", tell(m.key, err))
			}
			return nil, "", err
		case !p.mayHave(m, before):
			return before, "", nil
		}
		w := &attempt{pass: p, manifest: m, client: client, wanted: wanted.DeepCopy(), live: before}
		if before != nil && p.compares() {
			may, fault := w.mayWrite(ctx)
			if err = fault; !may && !apierrors.IsConflict(err) {
				p.sight(m, before)
				return before, "", err
			} else if !may {
				continue
			}
		}
		note, err = w.do(ctx)
		if lacksNamespace(err, m.id.Namespace) && p.work.Labels[placementv1.LabelParentObject] != "" {
			if err = p.makeNamespace(ctx, m.id.Namespace); err != nil {
				return before, "", err
			}
			continue
		}
		if !apierrors.IsConflict(err) {
			return before, note, err
		}
	}
	return before, "", err
}

// sight takes note of an object as it was looked at.
func (p *pass) sight(m *manifest, live *unstructured.Unstructured) {
	p.watches.put(m.gvr, m.key, live, drift.Fingerprint(live, placementv1.FieldManager))
}

// mayHave decides whether the Work may have an object that exists.
func (p *pass) mayHave(m *manifest, live *unstructured.Unstructured) bool {
	s := standingOf(live.GetOwnerReferences(), m.key, p.self, p.works)
	switch {
	case s.holder != nil && s.sibling && !p.overdue(m, maxBackoff):
		m.fail(placementv1.ReasonManifestPreparing, "Moves here from Work %s as soon as the hub has written that one too", s.holder.name)
	case s.holder != nil && !p.overdue(m, grace):
		m.fail(placementv1.ReasonManifestPreparing, "%s has the object, and may be about to give it up", s.holder.placement)
	case s.holder != nil:
		m.fail(placementv1.ReasonManifestFailedToTakeOver, "%s is placed by %s already; let one placement select it", m.key, s.holder.placement)
	case s.foreign != nil && p.strategy.AllowCoOwnership:
	case s.foreign != nil && s.mine:
		m.fail(placementv1.ReasonManifestApplyFailed, "%s belongs to %s %s in the member as well; remove that owner, or set allowCoOwnership", m.key, s.foreign.Kind, s.foreign.Name)
	case s.foreign != nil:
		m.fail(placementv1.ReasonManifestFailedToTakeOver,
			"%s exists in the member and is already owned by %s %s; remove that owner, set allowCoOwnership, or place the object under another name", m.key, s.foreign.Kind, s.foreign.Name)
	}
	return m.reason == ""
}

var secrets = schema.GroupKind{Kind: "Secret"}

// discreet is an error about a Secret, which is what it was and says less.
type discreet struct {
	error
	text string
}

func (d discreet) Error() string { return d.text }
func (d discreet) Unwrap() error { return d.error }

// discreetly makes an error about an object one that may be told.
func discreetly(key objectKey, err error) error {
	if err == nil || key.GroupKind != secrets {
		return err
	}
	return discreet{err, key.String() + ": " + tell(key, err)}
}

// tell is the member's own error, for a person. That of a Secret is reduced to its reason and its fields, since a message
// may quote values.
func tell(key objectKey, err error) string {
	if key.GroupKind != secrets {
		return err.Error()
	}
	var status apierrors.APIStatus
	var others contested
	switch {
	case errors.As(err, &others): // names who has which fields
		return others.Error()
	case errors.As(err, &status):
	case noAnswer(err):
		return "the member did not answer"
	default:
		return "it cannot be written as it is; what the Secret holds is not shown"
	}
	text := string(status.Status().Reason)
	if text == "" {
		text = fmt.Sprintf("HTTP %d", status.Status().Code)
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			text += ", " + string(cause.Type) + " " + cause.Field
		}
	}
	return text + "; what the Secret holds is not shown"
}
