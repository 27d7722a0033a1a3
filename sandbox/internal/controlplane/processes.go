package controlplane

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fleetwright/fleetwright/sandbox/internal/state"
)

// frontProxyUser is the name by which an API server makes itself known to the servers of aggregated APIs.
const frontProxyUser = "front-proxy-client"

// hubControllers are the controllers of a cluster that runs no workloads: what clean-up, identity, quota and admission
// policies need.
var hubControllers = []string{
	"namespace-controller",
	"garbage-collector-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"legacy-serviceaccount-token-cleaner-controller",
	"root-ca-certificate-publisher-controller",
	"certificatesigningrequest-approving-controller",
	"certificatesigningrequest-signing-controller",
	"certificatesigningrequest-cleaner-controller",
	"resourcequota-controller",
	"clusterrole-aggregation-controller",
	"validatingadmissionpolicy-status-controller",
}

// Etcd describes the etcd that all control planes of a sandbox share.
func Etcd(bin, dataDir, logs string, port, peerPort int) state.Process {
	client, peer := localURL("http", port), localURL("http", peerPort)
	return state.Process{
		Name: "etcd",
		Command: []string{
			filepath.Join(bin, "etcd"),
			"--name=sandbox",
			"--data-dir=" + dataDir,
			"--listen-client-urls=" + client,
			"--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer,
			"--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=sandbox=" + peer,
			// Nobody misses a sandbox that does not survive a power cut, and disks are slow.
			"--unsafe-no-fsync",
			"--quota-backend-bytes=8589934592",
			"--log-level=warn",
		},
		Dir:     filepath.Dir(dataDir),
		Address: client,
		Ready:   client + "/readyz",
		Log:     filepath.Join(logs, "etcd.log"),
	}
}

// APIServer describes the API server.
func (p *Plane) APIServer() state.Process {
	issuer := "https://" + p.Name + ".sandbox.fleetwright.test"
	process := p.process("apiserver", "kube-apiserver", p.Port,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(p.Port),
		// The address of an endpoint must not be a loopback address, and the API server has no other.
		"--endpoint-reconciler-type=none",
		"--etcd-servers="+localURL("http", p.EtcdPort),
		"--etcd-prefix=/"+p.Name,
		"--tls-cert-file="+p.serving().Cert,
		"--tls-private-key-file="+p.serving().Key,
		"--client-ca-file="+p.ca().Cert,
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range="+serviceRange,
		"--service-account-issuer="+issuer,
		"--service-account-key-file="+p.serviceAccountKey().Cert,
		"--service-account-signing-key-file="+p.serviceAccountKey().Key,
		"--kubelet-client-certificate="+p.kubeletClient().Cert,
		"--kubelet-client-key="+p.kubeletClient().Key,
		"--kubelet-preferred-address-types=InternalIP",
	)
	if p.Hub {
		process.Command = append(process.Command, p.aggregationFlags()...)
	}
	return process
}

// aggregationFlags let an API server pass requests on to the servers of aggregated APIs. Only the hub has such APIs; a
// member goes without, as each certificate that a server watches takes one of the few inotify instances that a user may have.
func (p *Plane) aggregationFlags() []string {
	return []string{
		"--requestheader-client-ca-file=" + p.frontProxyCA().Cert,
		"--requestheader-allowed-names=" + frontProxyUser,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.frontProxy().Cert,
		"--proxy-client-key-file=" + p.frontProxy().Key,
	}
}

// ControllerManager describes the controller manager.
func (p *Plane) ControllerManager() state.Process {
	controllers := "*"
	if p.Hub {
		controllers = strings.Join(hubControllers, ",")
	}
	kubeconfig := p.kubeconfig(controllerManagerKubeconfig)
	process := p.process("controller-manager", "kube-controller-manager", p.ControllerManagerPort,
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(p.ControllerManagerPort),
		"--tls-cert-file="+p.serving().Cert,
		"--tls-private-key-file="+p.serving().Key,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--controllers="+controllers,
		"--cluster-name="+p.Name,
		"--root-ca-file="+p.ca().Cert,
		"--service-account-private-key-file="+p.serviceAccountKey().Key,
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	)
	if p.Hub {
		// Members issue no certificates; why they go without is said at aggregationFlags.
		process.Command = append(process.Command,
			"--cluster-signing-cert-file="+p.ca().Cert,
			"--cluster-signing-key-file="+p.ca().Key,
		)
	}
	// It has no /readyz.
	process.Ready = process.Address + "/healthz"
	return process
}

// Scheduler describes the scheduler.
func (p *Plane) Scheduler() state.Process {
	kubeconfig := p.kubeconfig(schedulerKubeconfig)
	return p.process("scheduler", "kube-scheduler", p.SchedulerPort,
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(p.SchedulerPort),
		"--tls-cert-file="+p.serving().Cert,
		"--tls-private-key-file="+p.serving().Key,
		"--kubeconfig="+kubeconfig,
		"--authentication-kubeconfig="+kubeconfig,
		"--authorization-kubeconfig="+kubeconfig,
		"--leader-elect=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
	)
}
