package scheduler

import (
	"sync"

	"github.com/fleetwright/fleetwright/internal/placement"
)

// settled are the placements for which no change of a member makes a difference, short of its leaving, as of the last time that
// they were scheduled. While one is being scheduled it is not settled: what changes meanwhile may have been overlooked.
type settled struct {
	mu   sync.Mutex
	keys map[placement.Key]bool
}

func (s *settled) set(key placement.Key, settled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !settled {
		delete(s.keys, key)
		return
	}
	if s.keys == nil {
		s.keys = map[placement.Key]bool{}
	}
	s.keys[key] = true
}

func (s *settled) has(key placement.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}
