// Package sidecar makes an agent that speaks plain HTTP, and shows a card at GET /card, a member of the cluster: it
// registers what the card says, puts to the agent what others hand it by libp2p or in any dialect, and lets it send
// messages and meet in spaces by an API of its own. PROTOCOL.md, "An HTTP agent behind a sidecar".
//
// Nothing of the agent is reached but the paths of its card's skills, GET /card, and the path that is set for messages;
// and nothing but the agent is.
package sidecar
