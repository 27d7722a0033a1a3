package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// shortestRenewal and longestRenewal bound the time after which a failed renewal is repeated.
	shortestRenewal, longestRenewal = time.Minute, 15 * time.Minute
)

// schedule is when Run does what next.
type schedule struct {
	// renew is when to renew the certificate, and pause after how long to try again if that fails.
	renew time.Time
	pause time.Duration
	// looked is when it was last tried to join anew.
	looked time.Time
	// unfit tells that the hub refuses the certificate, and that token, the content of the token file, was of no help.
	unfit bool
	token []byte
}

// Run renews the certificate in time, and joins anew when the hub does not accept it any more and there is a token to do so
// with. A token it keeps fresh likewise. It returns when ctx ends.
func (i *Identity) Run(ctx context.Context) error {
	if i.TokenFile != "" {
		i.keepToken(ctx)
		return nil
	}
	s := schedule{renew: i.wire.current.Load().renewAt(), pause: shortestRenewal}
	for ctx.Err() == nil {
		var check <-chan time.Time
		if s.unfit {
			check = i.Clock.After(tokenCheck)
		}
		timer := i.Clock.NewTimer(max(s.renew.Sub(i.Clock.Now()), 0))
		select {
		case <-ctx.Done():
		case <-timer.C():
			i.keepFresh(ctx, &s)
		case <-check:
			if token, err := os.ReadFile(i.BootstrapTokenFile); err == nil && !bytes.Equal(token, s.token) {
				i.readmit(ctx, &s)
			}
		case <-i.wire.refused:
			if i.Clock.Now().Sub(s.looked) >= refusalPause {
				i.readmit(ctx, &s)
			}
		}
		timer.Stop()
	}
	return nil
}

// afresh is the schedule with a new certificate. Were the agent's clock far ahead of the hub's, the new one would be due at
// once as well; a tenth of its life has to pass all the same.
func (i *Identity) afresh() schedule {
	leaf := i.wire.current.Load().Leaf
	soonest := i.Clock.Now().Add(leaf.NotAfter.Sub(leaf.NotBefore) / 10)
	renew := i.wire.current.Load().renewAt()
	if renew.Before(soonest) {
		renew = soonest
	}
	return schedule{renew: renew, pause: shortestRenewal}
}

// keepFresh renews the certificate.
func (i *Identity) keepFresh(ctx context.Context, s *schedule) {
	err := i.renew(ctx)
	if err == nil {
		*s = i.afresh()
		return
	}
	if ctx.Err() != nil {
		return
	}
	current := i.wire.current.Load()
	i.tell("cannot renew the certificate, which expires at "+current.Leaf.NotAfter.UTC().Format(time.RFC3339), err)
	s.renew = i.Clock.Now().Add(s.pause)
	s.pause = min(2*s.pause, longestRenewal)
	if current.expired(i.Clock.Now()) {
		i.wire.refuse()
	}
}

// readmit tries to join anew.
func (i *Identity) readmit(ctx context.Context, s *schedule) {
	s.looked = i.Clock.Now()
	s.token, _ = os.ReadFile(i.BootstrapTokenFile) // one that cannot be read is told of by rejoin
	before := i.wire.current.Load()
	err := i.rejoin(ctx)
	if ctx.Err() != nil {
		return
	}
	if i.wire.current.Load() != before {
		*s = i.afresh()
		return
	}
	if s.unfit = err != nil; s.unfit {
		i.tell("the hub refuses the agent's certificate, and the agent cannot join anew", err)
	}
}

// rejoin joins anew if the hub does not know the present certificate any more: it has expired, its MemberCluster was deleted
// and made again, or the hub has another CA. If only a right is missing for a moment, which the hub repairs, it does nothing.
func (i *Identity) rejoin(ctx context.Context) error {
	current := i.wire.current.Load()
	token, err := readToken(i.BootstrapTokenFile)
	if err != nil {
		return err
	}
	hub, err := i.hub(&rest.Config{Host: i.HubURL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: i.HubCA}})
	if err != nil {
		return err
	}
	uid, err := i.membership(ctx, hub)
	if err != nil {
		return fmt.Errorf("%w; or cluster %s is no member any more", err, i.Cluster)
	}
	if uid == current.uid && !i.wire.unauthorized.Load() && !current.expired(i.Clock.Now()) {
		return errors.New("its rights are not in place; the hub sets them up again")
	}
	return i.obtain(ctx, hub, uid)
}
