// Package identity lets an agent sign in to the hub: with a certificate of its own, which it asks for with a bootstrap token
// and renews in time, or with a token file that somebody else keeps fresh.
//
// No key and no token ever appears in what this package logs or returns as an error.
package identity
