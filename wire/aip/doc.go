// Package aip is the wire of the Agent Interaction Protocol (AIP): the messages and services of its gateway, agents and toolboxes, generated from
// aip.proto, and what they are as messages of the core, there and back.
package aip
