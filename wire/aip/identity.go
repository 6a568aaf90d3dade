package aip

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/url"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/agora-relay/agora"
)

// Anyone who knows a node's address could register it under an id of his own, and so be let through to it. So gateways
// say with every call of a node which node they mean, and ask who is there before they register it, by a method that is
// not of the protocol: servers of other makes do not know it, and of those the address alone is known.

// IdentifyMethod is asked who serves at an address. Its messages are empty: what it says is metadata.
const IdentifyMethod = "/agora.aip.Node/Identify"

const (
	nodeKey      = "agora-node"        // of a call: which node is meant; of an answer: which one is there. Escaped as a segment of a path
	challengeKey = "agora-challenge"   // of the question: random
	proofKey     = "agora-proof"       // of the answer: that who is there has the secret of the registration
	secretKey    = "agora-node-secret" // of a registration: known to the node and to who registers it, which is the node itself
)

// Identity is who serves at an address. ID is empty for a gateway, which is no node. Secret is what registrations of
// the node carry; empty where it is not the node that registers itself.
type Identity struct {
	ID     string
	Secret string
}

// NewSecret returns a secret for registrations.
func NewSecret() string { return rand.Text() }

// Meaning returns a context for calls that are meant for a node, and to be refused by any other one.
func Meaning(ctx context.Context, id string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, nodeKey, url.PathEscape(id))
}

// WithSecret returns a context for the registration of a node by itself.
func WithSecret(ctx context.Context, secret string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, secretKey, secret)
}

// SecretOf returns the secret that a registration carries; empty for none.
func SecretOf(ctx context.Context) string {
	if all := metadata.ValueFromIncomingContext(ctx, secretKey); len(all) == 1 {
		return all[0]
	}
	return ""
}

// Meant reports whether a call is for a node of an id, or does not say for which one it is.
func Meant(ctx context.Context, id string) bool {
	for _, said := range metadata.ValueFromIncomingContext(ctx, nodeKey) {
		if is, err := url.PathUnescape(said); err != nil || is != id {
			return false
		}
	}
	return true
}

// Identify asks who serves at a connection. FORBIDDEN where that is another one than the node of an id, or where it
// proves by a secret that it registers itself and registered gives another one; registered may be nil where the node
// was registered before. nil where it is the node, and where it does not know the question or does not answer it in
// time.
func Identify(ctx context.Context, conn grpc.ClientConnInterface, id string, registered *string) error {
	challenge, header := rand.Text(), metadata.MD{}
	ctx = metadata.AppendToOutgoingContext(ctx, challengeKey, challenge)
	if err := conn.Invoke(ctx, IdentifyMethod, new(emptypb.Empty), new(emptypb.Empty), grpc.Header(&header)); err != nil {
		return nil
	}
	said := header.Get(nodeKey)
	if len(said) == 0 {
		return nil // it answers whatever it is asked
	}
	if is, err := url.PathUnescape(said[0]); len(said) > 1 || err != nil || is != id {
		return agora.Errorf(agora.Forbidden, "the address is that of another node, which says so itself")
	}
	proof := header.Get(proofKey)
	if registered == nil || len(proof) == 0 {
		return nil
	}
	if is, err := hex.DecodeString(proof[0]); err != nil || !hmac.Equal(is, proofOf(*registered, id, challenge)) {
		return agora.Errorf(agora.Forbidden, "the address is that of a node that registers itself, and this was not its registration")
	}
	return nil
}

// proofOf returns the proof that who is asked by a challenge has a secret.
func proofOf(secret, id, challenge string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("agora node\x00" + id + "\x00" + challenge))
	return h.Sum(nil)
}

// IdentityService is the service that answers who is there, as who returns it at the time. It takes any implementation.
func IdentityService(who func() Identity) *grpc.ServiceDesc {
	answer := func(_ any, ctx context.Context, decode func(any) error, by grpc.UnaryServerInterceptor) (any, error) {
		if by == nil {
			return identified(ctx, decode, who())
		}
		return by(ctx, nil, &grpc.UnaryServerInfo{FullMethod: IdentifyMethod}, func(ctx context.Context, _ any) (any, error) {
			return identified(ctx, decode, who())
		})
	}
	return &grpc.ServiceDesc{
		ServiceName: "agora.aip.Node", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Identify", Handler: answer}},
	}
}

// identified answers the question who is there.
func identified(ctx context.Context, decode func(any) error, who Identity) (any, error) {
	if err := decode(new(emptypb.Empty)); err != nil {
		return nil, err
	}
	said := metadata.Pairs(nodeKey, url.PathEscape(who.ID))
	if challenge := metadata.ValueFromIncomingContext(ctx, challengeKey); who.Secret != "" && len(challenge) == 1 {
		said.Set(proofKey, hex.EncodeToString(proofOf(who.Secret, who.ID, challenge[0])))
	}
	if err := grpc.SetHeader(ctx, said); err != nil {
		return nil, status.Error(codes.Internal, "the answer can't be sent")
	}
	return new(emptypb.Empty), nil
}
