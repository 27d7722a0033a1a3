// Package setup puts an agent together: it signs in to the hub, and for as long as its cluster is a member it runs what
// answers the hub and applies Works.
package setup
