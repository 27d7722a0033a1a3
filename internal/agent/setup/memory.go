package setup

import (
	"os"
	"runtime/debug"
)

// collectAt is by how many percent of what is in use the heap may grow before it is cleaned up. An agent has little to do
// and is to stay small, so it is cleaned up earlier than Go's default of 100.
const collectAt = 40

// LimitMemory makes the process keep its memory small, unless the operator has said how (GOGC).
func LimitMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
}
