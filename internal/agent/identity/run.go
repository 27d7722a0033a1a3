package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// shortestRenewal and longestRenewal bound the time after which a failed renewal is repeated.
	shortestRenewal, longestRenewal = time.Minute, 15 * time.Minute
)

// Run renews the certificate in time, and joins anew when the hub does not accept it any more and there is a token to do so
// with. It returns when ctx ends.
func (i *Identity) Run(ctx context.Context) error {
	if i.TokenFile != "" {
		<-ctx.Done()
		return nil
	}
	pause := shortestRenewal
	next := i.wire.current.Load().renewAt()
	var looked time.Time
	for {
		wait := next.Sub(i.Clock.Now())
		timer := i.Clock.NewTimer(max(wait, 0))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
			err := i.renew(ctx)
			if err == nil {
				pause, next = shortestRenewal, i.wire.current.Load().renewAt()
				continue
			}
			if ctx.Err() != nil {
				return nil
			}
			i.tell("cannot renew the certificate, which expires at "+i.wire.current.Load().Leaf.NotAfter.UTC().Format(time.RFC3339), err)
			next = i.Clock.Now().Add(pause)
			pause = min(2*pause, longestRenewal)
			if i.wire.current.Load().expired(i.Clock.Now()) {
				i.wire.refuse()
			}
		case <-i.wire.refused:
			timer.Stop()
			if gap := i.Clock.Now().Sub(looked); !looked.IsZero() && gap < refusalPause {
				select {
				case <-ctx.Done():
					return nil
				case <-i.Clock.After(refusalPause - gap):
				}
			}
			looked = i.Clock.Now()
			before := i.wire.current.Load()
			if err := i.rejoin(ctx); err != nil && ctx.Err() == nil {
				i.tell("the hub refuses the agent's certificate, and the agent cannot join anew", err)
			}
			if now := i.wire.current.Load(); now != before {
				pause, next = shortestRenewal, now.renewAt()
			}
		}
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
