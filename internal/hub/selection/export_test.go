package selection

import "slices"

// Watched are the resources that are watched now.
func (w *Watches) Watched() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for gvr := range w.running {
		all = append(all, gvr.GroupResource().String())
	}
	slices.Sort(all)
	return all
}
