package auth

import (
	"bufio"
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora/edge"
)

// revocations are what is taken back, by what names it. A line of their file is one of
//
//	name <name of a principal> [tenant=<name>]
//	jti <id of a token>
//	serial <serial number of a certificate, in hex>
//	before <Unix seconds, or a time like 2026-01-31T00:00:00Z>
//
// The last takes back every JWT made before that, and those that don't say
// when they were made. Names and ids are escaped like a URL query.
type revocations struct {
	names   map[string]bool // "name", or "name\x00tenant"
	jtis    map[string]bool
	serials map[string]bool
	before  time.Time
}

func (r revocations) has(p *edge.Principal) bool {
	if r.names[p.Name] || r.names[p.Name+"\x00"+p.Tenant] {
		return true
	}
	switch {
	case strings.HasPrefix(p.Source, sourceJWT):
		return p.ID != "" && r.jtis[p.ID] || !r.before.IsZero() && p.Issued.Before(r.before)
	case p.Source == sourceTLS:
		return r.serials[p.ID]
	}
	return false
}

func parseRevocations(b []byte) (revocations, error) {
	r := revocations{names: map[string]bool{}, jtis: map[string]bool{}, serials: map[string]bool{}}
	lines := bufio.NewScanner(bytes.NewReader(b))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		if err := r.add(strings.Fields(line)); err != nil {
			return r, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return r, lines.Err()
}

func (r *revocations) add(words []string) error {
	if len(words) == 3 && words[0] == "name" && strings.HasPrefix(words[2], "tenant=") {
		name, err := url.QueryUnescape(words[1])
		r.names[name+"\x00"+strings.TrimPrefix(words[2], "tenant=")] = true
		return err
	}
	if len(words) != 2 {
		return fmt.Errorf("want name, jti, serial or before, and one value")
	}
	value, err := url.QueryUnescape(words[1])
	if err != nil {
		return err
	}
	switch words[0] {
	case "name":
		r.names[value] = true
	case "jti":
		r.jtis[value] = true
	case "serial":
		r.serials[serial(value)] = true
	case "before":
		at, err := parseTime(words[1])
		if err != nil {
			return err
		}
		if at.After(r.before) {
			r.before = at
		}
	default:
		return fmt.Errorf("want name, jti, serial or before, not another word")
	}
	return nil
}

// serial returns a serial number as it is compared: the digits alone.
func serial(hex string) string {
	hex = strings.TrimLeft(strings.ToLower(strings.ReplaceAll(hex, ":", "")), "0")
	return hex
}

func parseTime(text string) (time.Time, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0), nil
	}
	return time.Parse(time.RFC3339, text)
}
