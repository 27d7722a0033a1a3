package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestMerge(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, []byte("authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string {
		t.Helper()
		content, err := Encode(Access{
			Context: name, User: "admin", Server: "https://" + name, CAFile: ca, Cert: []byte("cert " + name), Key: []byte("key"),
		})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := WriteFile(path, content); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := Merge(path, file("hub"), file("member1")); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.CurrentContext != "hub" || len(got.Contexts) != 2 {
		t.Errorf("current context %q of %d, want hub of 2", got.CurrentContext, len(got.Contexts))
	}
	member := got.Contexts["member1"]
	if server := got.Clusters[member.Cluster].Server; server != "https://member1" {
		t.Errorf("context member1 leads to %s", server)
	}
	if cert := string(got.AuthInfos[member.AuthInfo].ClientCertificateData); cert != "cert member1" {
		t.Errorf("context member1 authenticates with %q", cert)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig is not for its owner alone: %v, %v", info, err)
	}
}

func TestErrorsNameWhatIsMissing(t *testing.T) {
	if _, err := Encode(Access{Context: "hub", CAFile: "/nowhere"}); err == nil || !strings.Contains(err.Error(), "cluster hub") {
		t.Errorf("got %v, want an error that names the cluster", err)
	}
	if err := Merge(filepath.Join(t.TempDir(), "kubeconfig"), "/nowhere"); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("got %v, want an error that names the file", err)
	}
}
