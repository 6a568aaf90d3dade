package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/agora-relay/agora/edge"
)

const (
	leastSecret = 32   // bytes of a secret for HS256: as many as the hash has
	leastRSA    = 2048 // bits
	mostKeys    = 64   // of one set
)

// key verifies tokens of one algorithm alone.
type key struct {
	id, algorithm string
	material      any
	source        string // of the principals that it vouches for: one for each key, whatever it is called
}

// sourceJWT is what the sources of all principals by signed tokens begin with.
const sourceJWT = "jwt:"

// sourceOfKey names a key by its bytes without telling anything of them.
func sourceOfKey(algorithm string, material []byte) string {
	sum := sha256.Sum256(append([]byte(algorithm+":"), material...))
	return fmt.Sprintf("%s%x", sourceJWT, sum[:16])
}

// keys are those that may have signed a token.
type keys []key

// find returns the keys for a token that names an id, which may be empty, and
// an algorithm. The id only selects: it is compared, and never looked up anywhere.
func (k keys) find(id, algorithm string) []key {
	var fit []key
	for _, one := range k {
		if one.algorithm == algorithm && (id == "" || one.id == id || one.id == "") {
			fit = append(fit, one)
		}
	}
	return fit
}

// standing returns nil while the key that vouched for a principal is there, and for whom no key did.
func (k keys) standing(p *edge.Principal) error {
	if strings.HasPrefix(p.Source, sourceJWT) && !slices.ContainsFunc(k, func(one key) bool { return one.source == p.Source }) {
		return errGone
	}
	return nil
}

// same reports whether both are the same keys, in whichever order.
func (k keys) same(others keys) bool {
	missing := func(in keys) func(key) bool {
		return func(one key) bool {
			return !slices.ContainsFunc(in, func(o key) bool { return o.id == one.id && o.source == one.source })
		}
	}
	return !slices.ContainsFunc(k, missing(others)) && !slices.ContainsFunc(others, missing(k))
}

// secretKeys makes a key of a file that holds a secret; the end of its line is not part of it.
func secretKeys(b []byte) (keys, error) {
	b = bytes.TrimRight(b, "\r\n")
	if len(b) < leastSecret {
		return nil, fmt.Errorf("the secret has %d bytes, and needs at least %d", len(b), leastSecret)
	}
	algorithm := string(jose.HS256)
	return keys{{algorithm: algorithm, material: bytes.Clone(b), source: sourceOfKey(algorithm, b)}}, nil
}

// parseKeys reads a set of public keys. What can't verify the tokens that are
// taken here is passed over; no key at all is an error.
func parseKeys(b []byte) (keys, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, errors.New("this is no set of keys (JWKS)")
	}
	if len(set.Keys) > mostKeys {
		return nil, fmt.Errorf("the set has %d keys, more than %d", len(set.Keys), mostKeys)
	}
	var all keys
	for _, raw := range set.Keys {
		var j jose.JSONWebKey
		if json.Unmarshal(raw, &j) != nil || !j.Valid() || !j.IsPublic() || j.Use != "" && j.Use != "sig" {
			continue
		}
		algorithm := algorithmOf(j.Key)
		if algorithm == "" || j.Algorithm != "" && j.Algorithm != algorithm {
			continue
		}
		public, err := x509.MarshalPKIXPublicKey(j.Key)
		if err != nil {
			continue
		}
		all = append(all, key{j.KeyID, algorithm, j.Key, sourceOfKey(algorithm, public)})
	}
	if len(all) == 0 {
		return nil, errors.New("the set has no public key for RS256, ES256 or EdDSA")
	}
	return all, nil
}

// algorithmOf returns the one algorithm that a public key is for.
func algorithmOf(public any) string {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() >= leastRSA {
			return string(jose.RS256)
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return string(jose.ES256)
		}
	case ed25519.PublicKey:
		return string(jose.EdDSA)
	}
	return ""
}
