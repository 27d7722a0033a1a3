// Package ports picks TCP ports for processes that keep them over restarts.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

const (
	// lowest is the first port that is picked.
	lowest = 20000
	// attempts is how many ports are tried before any free port will do.
	attempts = 200
)

// Free returns a port of 127.0.0.1 that nobody listens on and that is not in use by the caller.
//
// The port is taken from below the range that the kernel draws the local ends of outgoing connections from. A port in
// that range could be lost to such a connection while its process is down, most likely to a client that keeps trying
// to reach that very process.
func Free(taken func(port int) bool) (int, error) {
	end := firstEphemeral()
	for range attempts {
		if end <= lowest {
			break
		}
		port := lowest + rand.IntN(end-lowest)
		if !taken(port) && listenable(port) {
			return port, nil
		}
	}
	for range attempts {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, fmt.Errorf("looking for a free port: %w", err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("looking for a free port: closing port %d: %w", port, err)
		}
		if !taken(port) {
			return port, nil
		}
	}
	return 0, errors.New("looking for a free port: every one found is taken")
}

func listenable(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

// firstEphemeral returns the first port that the kernel may give to an outgoing connection.
func firstEphemeral() int {
	const usual = 32768
	content, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return usual
	}
	var first, last int
	if _, err := fmt.Sscan(string(content), &first, &last); err != nil {
		return usual
	}
	return first
}
