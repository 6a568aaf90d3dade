// Package overload holds tests that give edges, each a process of its own, more than they can take,
// and tests that deploy them again under load: what an edge holds stays bounded, nobody else pays for
// it, and whatever was accepted arrives.
package overload
