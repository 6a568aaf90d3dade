// Package simcluster plays histories of a whole cluster within one process and under fake time: the real broker,
// presence, spaces and edges, agents of all kinds, and what may happen to them. A history is made from a seed. It is
// judged by a small model of what every mailbox, claim and space must then be, and a history that fails is made as
// short as it still fails, and told.
package simcluster
