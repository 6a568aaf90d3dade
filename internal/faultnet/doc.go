// Package faultnet makes networks that fail: their connections are cut, held up, or lose what is on its way.
//
// A [Link] does so to connections that one side opens or accepts, within its process; a [Proxy] to those between two
// processes.
package faultnet
