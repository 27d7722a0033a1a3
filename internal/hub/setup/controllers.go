// Package setup puts the hub together. All of its controllers are on this page.
package setup

import (
	"fmt"

	"github.com/fleetwright/fleetwright/internal/hub/claim"
	"github.com/fleetwright/fleetwright/internal/hub/clusterprofile"
	"github.com/fleetwright/fleetwright/internal/hub/consistency"
	"github.com/fleetwright/fleetwright/internal/hub/division"
	"github.com/fleetwright/fleetwright/internal/hub/eviction"
	"github.com/fleetwright/fleetwright/internal/hub/inrelease"
	"github.com/fleetwright/fleetwright/internal/hub/joining"
	"github.com/fleetwright/fleetwright/internal/hub/membercluster"
	"github.com/fleetwright/fleetwright/internal/hub/objectstatus"
	"github.com/fleetwright/fleetwright/internal/hub/override"
	placementcontroller "github.com/fleetwright/fleetwright/internal/hub/placement"
	"github.com/fleetwright/fleetwright/internal/hub/rolling"
	"github.com/fleetwright/fleetwright/internal/hub/scheduler"
	"github.com/fleetwright/fleetwright/internal/hub/selection"
	"github.com/fleetwright/fleetwright/internal/hub/snapshots"
	"github.com/fleetwright/fleetwright/internal/hub/statusback"
	"github.com/fleetwright/fleetwright/internal/hub/updaterun"
	"github.com/fleetwright/fleetwright/internal/hub/work"
	"github.com/fleetwright/fleetwright/internal/placement"
	"github.com/fleetwright/fleetwright/internal/schedule/ledger"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// addControllers adds every controller of the hub to its manager.
func addControllers(mgr ctrl.Manager, options Options) error {
	live, err := newLiveClients(mgr.GetConfig())
	if err != nil {
		return err
	}
	var (
		cached   = mgr.GetClient()
		direct   = mgr.GetAPIReader()
		real     = clock.RealClock{}
		rules    = options.rules()
		recorder = mgr.GetEventRecorder("fleetwright-hub")
		selector = &selection.Selector{Discovery: live.discovery, Client: live.dynamic, Rules: rules}
		watches  = selection.NewWatches(live.discovery, live.metadata, real)
	)
	members := &membercluster.Controller{
		Client: cached, APIReader: direct, Clock: real, Recorder: recorder, Tracker: &consistency.Tracker{}, ForceLeaveAfter: options.ForceLeaveAfter,
	}
	if err := work.AddIndexes(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := mgr.Add(watches); err != nil {
		return fmt.Errorf("add the watches of selected objects: %w", err)
	}
	all := []interface{ SetupWithManager(ctrl.Manager) error }{
		members,
		&clusterprofile.Controller{Client: cached, APIReader: direct, Clock: real, Namespace: options.ClusterProfileNamespace},
		&joining.Controller{Client: cached, APIReader: direct, Recorder: recorder, SecondCluster: members.SecondCluster},
		&override.Controller{Client: cached, APIReader: direct, Kinds: placement.AllKinds(), Tracker: &consistency.Tracker{}},
		&override.Controller{Client: cached, APIReader: direct, Kinds: placement.AllKinds(), Tracker: &consistency.Tracker{}, Namespaced: true},
		&claim.Controller{
			Client: cached, Metadata: live.metadata, Mapper: mgr.GetRESTMapper(), Clock: real, Rules: rules, Changes: watches,
		},
		&claim.StatusController{Client: cached, Clock: real},
		&inrelease.Controller{Client: cached},
		&statusback.Controller{Client: cached, APIReader: direct, Kinds: placement.AllKinds(), Recorder: recorder, Changes: watches},
	}
	for _, kinds := range placement.AllKinds() {
		store := &snapshots.Store{Client: cached, APIReader: direct, Carriage: &kinds.Carriage, Kinds: kinds, Selector: selector}
		takings := &consistency.Takings{}
		finder := override.NewFinder(direct, kinds)
		all = append(all,
			&placementcontroller.Controller{
				Client: cached, APIReader: direct, Kinds: kinds, Clock: real, Recorder: recorder, Tracker: &consistency.Tracker{},
				Snapshots: store, Overrides: finder, Validator: selector, Watches: watches, Rules: rules,
			},
			&scheduler.Controller{Client: cached, Kinds: kinds, Clock: real},
			&rolling.Controller{Client: cached, Kinds: kinds, Takings: takings, Overrides: finder},
			&updaterun.Controller{
				Client: cached, APIReader: direct, Kinds: kinds, Clock: real, Recorder: recorder, Tracker: &consistency.Tracker{}, Snapshots: store,
				Overrides: finder,
			},
			&work.Controller{Client: cached, APIReader: direct, Carriage: &kinds.Carriage, Clock: real, Tracker: &consistency.Tracker{}, Rules: rules},
		)
		if !kinds.Namespaced { // the API has evictions from placements of the cluster scope alone
			all = append(all, &eviction.Controller{Client: cached, APIReader: direct, Kinds: kinds, Clock: real, Recorder: recorder, Takings: takings})
		}
	}
	account := &ledger.Ledger{}
	for _, carriage := range placement.ObjectCarriages() {
		all = append(all,
			&division.Controller{
				Client: cached, APIReader: direct, Carriage: carriage, Clock: real, Recorder: recorder, Changes: watches,
				Ledger: account, DeschedulingInterval: options.DeschedulingInterval,
				Snapshots: &snapshots.Store{Client: cached, APIReader: direct, Carriage: carriage},
			},
			&work.Controller{Client: cached, APIReader: direct, Carriage: carriage, Clock: real, Tracker: &consistency.Tracker{}, Rules: rules},
			&objectstatus.Controller{Client: cached, APIReader: direct, Carriage: carriage},
		)
	}
	for _, c := range all {
		if err := c.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("add a controller to the hub: %w", err)
		}
	}
	return nil
}

// liveClients read the hub's API without a cache between.
type liveClients struct {
	discovery *discovery.DiscoveryClient
	dynamic   dynamic.Interface
	metadata  metadata.Interface
}

func newLiveClients(config *rest.Config) (*liveClients, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // that what a namespace holds is of an old API is no news, and said each time
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client for the hub: %w", err)
	}
	content, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for what is placed: %w", err)
	}
	m, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	return &liveClients{discovery: d, dynamic: content, metadata: m}, nil
}
