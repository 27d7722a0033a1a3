// Package policies tests what becomes of objects that policies claim, from the claim to the Works and back to the objects' statuses: all
// controllers that have a part in it, on a real API server, with the tests in the place of users and agents.
package policies
