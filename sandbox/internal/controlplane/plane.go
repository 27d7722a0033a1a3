// Package controlplane knows how the processes of a Kubernetes control plane are started, and what a fresh one needs
// before it can be used.
package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fleetwright/fleetwright/sandbox/internal/kubeconfig"
	"github.com/fleetwright/fleetwright/sandbox/internal/pki"
	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// Groups that the cluster-admin role is bound to.
const (
	// AdminsGroup is the group of the people who administer the fleet.
	AdminsGroup = "fleetwright:admins"
	// addOnsGroup is the group of what the sandbox itself runs in a cluster.
	addOnsGroup = "fleetwright:sandbox"
)

// adminUser is the name of the administrator in every cluster, and of the administrator's kubeconfig.
const adminUser = "admin"

// serviceRange is the range of Service addresses. serviceAddress is the one that the API server's own Service gets.
const (
	serviceRange   = "10.96.0.0/16"
	serviceAddress = "10.96.0.1"
)

// Plane is one control plane: where its files are and where it serves.
type Plane struct {
	// Name is the cluster's name.
	Name string
	// Hub is true for the cluster that runs no workloads.
	Hub bool
	// Dir holds its certificates and kubeconfigs.
	Dir string
	// Bin holds the Kubernetes programs.
	Bin string
	// Logs is where its processes log.
	Logs string
	// EtcdPort is the port of the etcd that all control planes share.
	EtcdPort int
	// Port, ControllerManagerPort and SchedulerPort are where it serves.
	Port, ControllerManagerPort, SchedulerPort int
}

// URL returns the address of the API server.
func (p *Plane) URL() string { return localURL("https", p.Port) }

// CAFile returns the file of the authority that signs serving and client certificates. Certificates that users ask for
// with a CertificateSigningRequest come from it as well.
func (p *Plane) CAFile() string { return p.ca().Cert }

// AdminKubeconfig returns the path of the administrator's kubeconfig.
func (p *Plane) AdminKubeconfig() string { return p.kubeconfig(adminUser) }

func (p *Plane) kubeconfig(name string) string { return filepath.Join(p.Dir, name+".kubeconfig") }

func (p *Plane) ca() pki.Pair { return pki.PairAt(filepath.Join(p.Dir, "pki", "ca")) }
func (p *Plane) frontProxyCA() pki.Pair {
	return pki.PairAt(filepath.Join(p.Dir, "pki", "front-proxy-ca"))
}
func (p *Plane) frontProxy() pki.Pair {
	return pki.PairAt(filepath.Join(p.Dir, "pki", "front-proxy-client"))
}
func (p *Plane) kubeletClient() pki.Pair {
	return pki.PairAt(filepath.Join(p.Dir, "pki", "apiserver-kubelet-client"))
}

// serving is what all servers of the control plane show: they are all at the same address.
func (p *Plane) serving() pki.Pair { return pki.PairAt(filepath.Join(p.Dir, "pki", "serving")) }

func (p *Plane) serviceAccountKey() pki.Pair {
	return pki.Pair{Cert: filepath.Join(p.Dir, "pki", "sa.pub"), Key: filepath.Join(p.Dir, "pki", "sa.key")}
}

// Names of the kubeconfigs of a control plane's own parts.
const (
	rootKubeconfig              = "root"
	controllerManagerKubeconfig = "controller-manager"
	schedulerKubeconfig         = "scheduler"
)

// users are those whose kubeconfigs every control plane has, by the names of the files. Kubernetes knows the names of
// its own parts and gives them their rights.
var users = map[string]pki.Client{
	adminUser:                   {User: adminUser, Groups: []string{AdminsGroup}},
	controllerManagerKubeconfig: {User: "system:kube-controller-manager"},
	schedulerKubeconfig:         {User: "system:kube-scheduler"},
	// May do everything before any role exists. Only the sandbox itself uses it.
	rootKubeconfig: {User: "sandbox-root", Groups: []string{"system:masters"}},
}

// WriteFiles creates what is missing of the control plane's certificates and kubeconfigs.
func (p *Plane) WriteFiles() error {
	ca, err := pki.LoadOrCreateAuthority(p.ca(), p.Name+"-ca")
	if err != nil {
		return err
	}
	frontProxyCA, err := pki.LoadOrCreateAuthority(p.frontProxyCA(), p.Name+"-front-proxy-ca")
	if err != nil {
		return err
	}
	if err := pki.EnsureSigningKey(p.serviceAccountKey()); err != nil {
		return fmt.Errorf("key for service account tokens of cluster %s: %w", p.Name, err)
	}
	if err := ca.EnsureServer(p.serving(), "kube-apiserver", "127.0.0.1", "localhost", serviceAddress,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"); err != nil {
		return err
	}
	if err := ca.EnsureClient(p.kubeletClient(), pki.Client{User: "kube-apiserver-kubelet-client"}); err != nil {
		return err
	}
	if err := frontProxyCA.EnsureClient(p.frontProxy(), pki.Client{User: frontProxyUser}); err != nil {
		return err
	}
	for name, user := range users {
		if err := p.ensureKubeconfig(name, user); err != nil {
			return err
		}
	}
	return nil
}

// EnsureAddOnKubeconfig writes a kubeconfig for something that the sandbox runs in the cluster, unless it is there, and
// returns its path. Its user can do everything once Prepare is done.
func (p *Plane) EnsureAddOnKubeconfig(name string) (string, error) {
	return p.kubeconfig(name), p.ensureKubeconfig(name, pki.Client{User: "sandbox-" + name, Groups: []string{addOnsGroup}})
}

// ensureKubeconfig writes a kubeconfig for a user to the control plane's folder, unless it is there.
func (p *Plane) ensureKubeconfig(name string, user pki.Client) error {
	if _, err := os.Stat(p.kubeconfig(name)); err == nil {
		return nil
	}
	access, err := p.Access(user)
	if err != nil {
		return err
	}
	content, err := kubeconfig.Encode(access)
	if err != nil {
		return err
	}
	return kubeconfig.WriteFile(p.kubeconfig(name), content)
}

// Access issues a certificate by which a user reaches the cluster.
func (p *Plane) Access(user pki.Client) (kubeconfig.Access, error) {
	ca, err := pki.LoadOrCreateAuthority(p.ca(), p.Name+"-ca")
	if err != nil {
		return kubeconfig.Access{}, err
	}
	cert, key, err := ca.IssueClient(user)
	if err != nil {
		return kubeconfig.Access{}, fmt.Errorf("cluster %s: %w", p.Name, err)
	}
	return kubeconfig.Access{
		Context: p.Name, User: user.User, Server: p.URL(), CAFile: p.CAFile(), Cert: cert, Key: key,
	}, nil
}

// process completes the description of one of the control plane's processes.
func (p *Plane) process(part, program string, port int, flags ...string) state.Process {
	name := p.Name + "-" + part
	return state.Process{
		Name:        name,
		Cluster:     p.Name,
		Command:     append([]string{filepath.Join(p.Bin, program)}, flags...),
		Dir:         p.Dir,
		Address:     localURL("https", port),
		Ready:       localURL("https", port) + "/readyz",
		ReadyCAFile: p.CAFile(),
		Log:         filepath.Join(p.Logs, name+".log"),
	}
}

func localURL(scheme string, port int) string {
	return scheme + "://127.0.0.1:" + strconv.Itoa(port)
}
