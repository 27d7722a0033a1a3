package joining

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"

	clusterv1 "github.com/fleetwright/fleetwright/api/cluster/v1"
	"github.com/fleetwright/fleetwright/internal/hub/enqueue"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Reasons of conditions on certificate signing requests, and of events on the MemberCluster about them.
const (
	// ReasonApproved: the request is the agent's own.
	ReasonApproved = "FleetwrightAgentApproved"
	// ReasonDenied: the message says why not.
	ReasonDenied = "FleetwrightAgentDenied"
)

// Controller answers certificate signing requests.
type Controller struct {
	// Client reads from the cache, APIReader from the API server.
	Client    client.Client
	APIReader client.Reader
	Recorder  events.EventRecorder
	// SecondCluster, if set, is told when another cluster than the member signs in under its name.
	SecondCluster func(ctx context.Context, cluster, clusterID string)

	locks locks
}

// workers is how many requests are looked at at once.
const workers = 8

// locks keep requests for one cluster from being answered at the same time. Several clusters may share one.
type locks [64]sync.Mutex

// of returns the lock of a cluster.
func (l *locks) of(cluster string) *sync.Mutex {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(cluster)) // which never fails
	return &l[hash.Sum32()%uint32(len(l))]
}

// CacheByObject keeps the requests to other signers out of the hub's cache.
func CacheByObject() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&certificatesv1.CertificateSigningRequest{}: {Field: bySigner()},
	}
}

func bySigner() fields.Selector {
	return fields.OneTermEqualSelector("spec.signerName", certificatesv1.KubeAPIServerClientSignerName)
}

// SetupWithManager registers the controller.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	isOurs := predicate.NewPredicateFuncs(func(object client.Object) bool {
		csr, ok := object.(*certificatesv1.CertificateSigningRequest)
		return ok && read(csr) != nil
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("joining").
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(isOurs)).
		WithOptions(enqueue.Options(workers)).
		Complete(c)
	if err != nil {
		return fmt.Errorf("set up the controller of certificate signing requests: %w", err)
	}
	return nil
}

// Reconcile answers one request. Of the requests for one cluster one is answered at a time, so that two made with one token
// are not both approved.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := c.Client.Get(ctx, request.NamespacedName, csr); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	claim := read(csr)
	if claim == nil {
		return ctrl.Result{}, nil
	}
	lock := c.locks.of(claim.cluster)
	lock.Lock()
	defer lock.Unlock()
	cluster, err := c.cluster(ctx, claim.cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	v := decide(csr, claim, cluster)
	if v.first {
		var others certificatesv1.CertificateSigningRequestList
		if err := c.APIReader.List(ctx, &others, client.MatchingFieldsSelector{Selector: bySigner()}); err != nil {
			return ctrl.Result{}, fmt.Errorf("list certificate signing requests: %w", err)
		}
		v = decideFirst(csr, claim, others.Items)
	}
	return ctrl.Result{}, c.answer(ctx, csr, cluster, v)
}

// cluster reads a MemberCluster live: one that was just deleted admits nobody.
func (c *Controller) cluster(ctx context.Context, name string) (*clusterv1.MemberCluster, error) {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return nil, nil //nolint:nilnil // none is an answer, not an error
	}
	cluster := &clusterv1.MemberCluster{}
	if err := c.APIReader.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // as above
		}
		return nil, fmt.Errorf("read MemberCluster %s: %w", name, err)
	}
	return cluster, nil
}

// answer writes the verdict onto the request and tells of it.
func (c *Controller) answer(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, cluster *clusterv1.MemberCluster, v verdict) error {
	condition := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: ReasonDenied, Message: v.message,
	}
	eventType := corev1.EventTypeWarning
	if v.approve {
		condition.Type, condition.Reason, eventType = certificatesv1.CertificateApproved, ReasonApproved, corev1.EventTypeNormal
	}
	csr.Status.Conditions = append(csr.Status.Conditions, condition)
	if err := c.Client.SubResource("approval").Update(ctx, csr); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // somebody else was faster; what they did is looked at next
		}
		return fmt.Errorf("answer certificate signing request %s: %w", csr.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("answered a certificate signing request", "request", csr.Name, "approved", v.approve, "why", v.message)
	// Anybody may make a request that claims a cluster's name; only what the cluster's own accounts do is told on it.
	if cluster == nil || (csr.Spec.Username != bootstrapUser(cluster.Name) && csr.Spec.Username != clusterv1.AgentUser(cluster.Name, cluster.UID)) {
		return nil
	}
	if v.otherCluster != "" && c.SecondCluster != nil {
		c.SecondCluster(ctx, cluster.Name, v.otherCluster)
	}
	c.Recorder.Eventf(cluster, csr, eventType, condition.Reason, "Answer", "certificate signing request %s: %s", csr.Name, v.message)
	return nil
}
