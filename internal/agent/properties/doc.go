// Package properties tells the hub what a cluster has: its nodes, what they give to pods, and how much of it is left.
package properties
