package selection

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IncompleteError says that what a placement selects is not known, because something could not be read. Nobody may
// conclude anything from it, least of all that an object is gone.
type IncompleteError struct {
	// Unread is what could not be read.
	Unread string
	// Err is why.
	Err error
}

// Error names what could not be read, and why.
func (e *IncompleteError) Error() string { return fmt.Sprintf("cannot read %s: %v", e.Unread, e.Err) }

// Unwrap returns why.
func (e *IncompleteError) Unwrap() error { return e.Err }

// IsIncomplete tells whether err is, or wraps, an IncompleteError.
func IsIncomplete(err error) bool {
	var incomplete *IncompleteError
	return errors.As(err, &incomplete)
}

// confirmedAbsent tells whether the answer to a read of an object means that the API which serves objects of its kind
// has no such object. When that API itself is gone, the answer is "not found" too, but nothing follows from it.
func confirmedAbsent(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	if details == nil || details.Name != name {
		return false
	}
	for _, cause := range details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return false
		}
	}
	return true
}
