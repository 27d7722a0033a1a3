package apply

import "sync"

// limitedGroup runs functions at once, not too many of them.
type limitedGroup struct {
	limit chan struct{}
	wg    sync.WaitGroup
}

func limited(most int) *limitedGroup { return &limitedGroup{limit: make(chan struct{}, most)} }

// do runs a function, as soon as there is room for it.
func (g *limitedGroup) do(f func()) {
	g.limit <- struct{}{}
	g.wg.Go(func() {
		defer func() { <-g.limit }()
		f()
	})
}

// wait waits until all have ended.
func (g *limitedGroup) wait() { g.wg.Wait() }
