// Package agora names what Agora moves: ids, addresses, messages, agents,
// errors and limits. It imports nothing but the standard library, and
// everything else imports it.
package agora
