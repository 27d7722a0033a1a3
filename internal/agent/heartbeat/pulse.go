package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// jitter is by how much of itself a period may be shorter, so that not all agents speak at once.
	jitter = 0.05
	// soonAgain is after how long a renewal that failed is tried again, if the period is not shorter.
	soonAgain = 5 * time.Second
)

// pulse renews the Lease in the cluster's namespace: the sign that the agent lives and reaches the hub.
type pulse struct {
	hub       client.Client
	namespace string
	holder    string
	clock     clock.WithTicker
	log       logr.Logger

	mu     sync.Mutex
	period time.Duration // 0: silent
	change chan struct{}
}

func newPulse(hub client.Client, namespace, holder string, c clock.WithTicker, log logr.Logger) *pulse {
	return &pulse{hub: hub, namespace: namespace, holder: holder, clock: c, log: log, change: make(chan struct{}, 1)}
}

// beat sets the period; 0 is silence.
func (p *pulse) beat(period time.Duration) {
	p.mu.Lock()
	changed := p.period != period
	p.period = period
	p.mu.Unlock()
	if changed {
		select {
		case p.change <- struct{}{}:
		default:
		}
	}
}

func (p *pulse) current() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.period
}

// Start beats until ctx ends.
func (p *pulse) Start(ctx context.Context) error {
	failing := false
	for {
		period := p.current()
		var next <-chan time.Time // never, while silent
		if period > 0 {
			wait := time.Duration(float64(period) * (1 - jitter*rand.Float64())) //nolint:gosec // no secret
			err := p.renew(ctx, period)
			if err != nil && ctx.Err() == nil {
				if !failing {
					p.log.Info("cannot give a sign of life; tries on", "why", err.Error())
				}
				wait = min(wait, soonAgain)
			}
			failing = err != nil
			next = p.clock.After(wait)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-p.change:
		case <-next:
		}
	}
}

func (p *pulse) renew(ctx context.Context, period time.Duration) error {
	patch, err := json.Marshal(map[string]any{"spec": coordinationv1.LeaseSpec{
		HolderIdentity:       &p.holder,
		LeaseDurationSeconds: seconds(3 * period),
		RenewTime:            &metav1.MicroTime{Time: p.clock.Now()},
	}})
	if err != nil {
		return fmt.Errorf("write down the renewal: %w", err)
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = p.namespace, clusterv1.HeartbeatLease
	ctx, cancel := context.WithTimeout(ctx, max(period, soonAgain))
	defer cancel()
	if err := p.hub.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("renew Lease %s/%s: %w", p.namespace, lease.Name, err)
	}
	return nil
}

func seconds(d time.Duration) *int32 {
	s := int32(d / time.Second)
	return &s
}
