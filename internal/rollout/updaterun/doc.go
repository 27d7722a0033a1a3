// Package updaterun decides what the update runs of one placement do next. It is given all that was observed and the time,
// does no I/O, and says what is to be written and why, in words for a person.
//
// How it is used, once for each change of something that a placement's runs depend on:
//
//  1. Unplanned names the runs that need a plan; MakePlan makes one, or says what is missing.
//  2. Decide says what each run does. At most one of them moves the placement.
//  3. The caller writes the Results, InOrder: bindings, then approval requests, then the run's status.
//     A write that fails ends the pass; whatever was written, Decide goes on from it. A status that MayWait may be written
//     later, with others.
//
// Three rules make that safe at every point between two writes:
//
//   - A binding says which run moved it and when. Whether a cluster was started is read there, not in the run's status.
//   - What lets something happen is recorded in the run's status before it happens: taking over, a stage that is done, a
//     gate that is open. So a cluster is only ever started on the strength of what was stored.
//   - A cluster that is done stays done, whatever becomes of it later.
package updaterun
