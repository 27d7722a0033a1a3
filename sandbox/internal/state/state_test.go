package state

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fleetwright/fleetwright/sandbox/internal/process"
)

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("loading from an empty folder: got %v, want os.ErrNotExist", err)
	}
	want := New()
	want.Bin = "/somewhere/bin"
	want.Clusters = []Cluster{{Name: Hub, Parts: Parts{ControllerManager: true}, Server: "https://127.0.0.1:20000"}}
	want.SetProcess(Process{
		Name: "hub-apiserver", Cluster: Hub, Command: []string{"kube-apiserver", "--v=1"},
		Identity: process.Identity{PID: 12, StartTime: 34, BootID: "boot"},
	})
	if _, err := want.Port("hub-apiserver"); err != nil {
		t.Fatal(err)
	}
	if err := want.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v (%v), want only the state file", entries, err)
	}
}

func TestLoadRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, tc := range map[string]struct{ content, wantErr string }{
		"another version": {content: `{"version": 99}`, wantErr: "version 99"},
		"cut off":         {content: `{"version": 1, "clus`, wantErr: "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, FileName), []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %v, want an error with %q", err, tc.wantErr)
			}
		})
	}
}

func TestSetProcessReplacesInPlace(t *testing.T) {
	s := New()
	s.SetProcess(Process{Name: "etcd", Log: "old"})
	s.SetProcess(Process{Name: "hub-apiserver"})
	s.SetProcess(Process{Name: "etcd", Log: "new"})
	if len(s.Processes) != 2 || s.Processes[0].Log != "new" {
		t.Errorf("got %+v", s.Processes)
	}
	if s.Process("nobody") != nil || s.Cluster("nowhere") != nil {
		t.Error("found what was never recorded")
	}
}

func TestPortStaysTheSame(t *testing.T) {
	s := New()
	first, err := s.Port("etcd")
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Port("hub-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Port("etcd")
	if err != nil {
		t.Fatal(err)
	}
	if first != again || first == other {
		t.Errorf("got %d, then %d for the same purpose, and %d for another", first, again, other)
	}
}
