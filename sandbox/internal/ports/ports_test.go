package ports

import (
	"net"
	"strconv"
	"testing"
)

func TestFreeAvoidsWhatIsTaken(t *testing.T) {
	taken := map[int]bool{}
	for range 50 {
		port, err := Free(func(p int) bool { return taken[p] })
		if err != nil {
			t.Fatal(err)
		}
		if taken[port] {
			t.Fatalf("port %d was handed out twice", port)
		}
		taken[port] = true
		if port < lowest || port >= firstEphemeral() {
			t.Errorf("port %d is not in [%d, %d)", port, lowest, firstEphemeral())
		}
	}
}

func TestFreeFallsBackToAnyPort(t *testing.T) {
	first := firstEphemeral()
	port, err := Free(func(p int) bool { return p < first })
	if err != nil {
		t.Fatal(err)
	}
	if port < first {
		t.Errorf("port %d is one that the caller named as taken", port)
	}
	if _, err := Free(func(int) bool { return true }); err == nil {
		t.Error("no error although every port is taken")
	}
}

func TestListenable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if listenable(port) {
		t.Errorf("port %d is listened on and counts as free", port)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if !listenable(port) {
		t.Errorf("port %s is free and counts as taken", strconv.Itoa(port))
	}
}
