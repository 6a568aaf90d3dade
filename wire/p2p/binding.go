package p2p

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// Binding is what a peer says by its key in order to speak as an agent: which agent of which tenant, at whose cluster, and when it says so. Nobody but the peer can say it, and it serves
// nobody at another cluster, for another agent, or later.
type Binding struct {
	Tenant string
	Agent  agora.AgentID
	Edge   string // peer id of an edge of the cluster
	Peer   string // peer id of the peer that says it
	Time   int64  // milliseconds since 1970
}

// bindingDomain begins a statement: the key signs nothing else that begins so.
const bindingDomain = "agora-peer-binding/1"

// Statement returns the bytes that the peer signs: six lines, the last one without a line break. Only the tenant could have one in it, so no two bindings share their bytes.
func (b *Binding) Statement() []byte {
	return []byte(strings.Join([]string{bindingDomain, b.Tenant, string(b.Agent), b.Edge, b.Peer, strconv.FormatInt(b.Time, 10)}, "\n"))
}

// BindingSkew is how far the time of a statement may be from the cluster's.
const BindingSkew = 5 * time.Minute

// Proof is what a registration has of a statement; the rest of that is known where it is read.
type Proof struct {
	Edge      string // peer id of an edge of the cluster
	Time      int64  // milliseconds since 1970
	Signature []byte // of the statement
	PublicKey []byte // of the peer, as libp2p writes keys down; empty where the peer id is the key
}

const (
	maxProof     = 16 << 10 // bytes of one, written down: an RSA key of 8,192 bits and its signature are 3 KiB
	maxKey       = 4 << 10
	maxSignature = 2 << 10
)

// proofJSON is a Proof as it is written.
type proofJSON struct {
	Edge      string `json:"edge"`
	Time      int64  `json:"time"`
	Signature string `json:"signature"`
	PublicKey string `json:"public_key,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (p Proof) MarshalJSON() ([]byte, error) {
	return json.Marshal(proofJSON{p.Edge, p.Time, base64.StdEncoding.EncodeToString(p.Signature), base64.StdEncoding.EncodeToString(p.PublicKey)})
}

// ReadProof reads the member "proof" of a registration. INVALID_REQUEST where it is none. Whether it holds is for who knows keys.
func ReadProof(b []byte) (Proof, error) {
	var said proofJSON
	if len(b) > maxProof || json.Unmarshal(b, &said) != nil {
		return Proof{}, agora.Errorf(agora.InvalidRequest, `proof is no {"edge","time","signature"}`)
	}
	p := Proof{Edge: said.Edge, Time: said.Time}
	var err error
	if p.Signature, err = inBase64("signature", said.Signature, maxSignature); err != nil {
		return Proof{}, err
	}
	if p.PublicKey, err = inBase64("public_key", said.PublicKey, maxKey); err != nil {
		return Proof{}, err
	}
	if p.Edge == "" || len(p.Edge) > agora.MaxCardWord || p.Time <= 0 || len(p.Signature) == 0 {
		return Proof{}, agora.Errorf(agora.InvalidRequest, "proof lacks edge, time or signature")
	}
	return p, nil
}

// inBase64 reads a member in base64, with padding or without.
func inBase64(name, text string, most int) ([]byte, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(b) > most {
		return nil, agora.Errorf(agora.InvalidRequest, "proof.%s is not base64 of at most %d bytes", name, most)
	}
	return b, nil
}
