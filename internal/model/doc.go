// Package model has no code of its own: its tests drive broker, presence and sessions as a cluster does, under random
// faults, next to a small model of what every mailbox, claim and space must then be.
package model
