package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// servers serve metrics and health for as long as the process lives.
type servers struct {
	// ready tells whether the agent serves a membership.
	ready atomic.Bool
	all   []*http.Server
}

// serve begins to listen; the address "0" serves nothing.
func serve(metricsAddress, probeAddress string, log logr.Logger) (*servers, error) {
	s := &servers{}
	health := http.NewServeMux()
	health.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	health.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "the cluster is no member yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprint(w, "ok")
	})
	figures := http.NewServeMux()
	figures.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
	for address, handler := range map[string]http.Handler{metricsAddress: figures, probeAddress: health} {
		if address == "0" || address == "" {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("listen at %s: %w", address, err)
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
		s.all = append(s.all, server)
		go func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				log.Error(err, "serves no more", "address", address)
			}
		}()
	}
	return s, nil
}

func (s *servers) close() {
	for _, server := range s.all {
		_ = server.Shutdown(context.Background()) // nothing is lost if a scrape is cut off
	}
}

// mapperProvider gives a manager the mapper that is there already.
func mapperProvider(mapper meta.RESTMapper) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil }
}
