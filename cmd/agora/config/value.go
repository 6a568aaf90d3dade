package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes: "16KiB", "1MiB", "4096".
type size int64

var units = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// Set reads a size.
func (s *size) Set(text string) error {
	unit := int64(1)
	for _, u := range units {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = digits, u.bytes
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("want bytes, such as 4096, 16KiB or 1MiB")
	}
	*s = size(n * unit)
	return nil
}

// String returns the size in the largest unit that divides it.
func (s *size) String() string {
	text := strconv.FormatInt(int64(*s), 10)
	for _, u := range units {
		if int64(*s) >= u.bytes && int64(*s)%u.bytes == 0 {
			text = strconv.FormatInt(int64(*s)/u.bytes, 10) + u.name
		}
	}
	return text
}

// Type names the kind of value in the help.
func (*size) Type() string { return "size" }

// onOff is a switch that is written as on or off.
type onOff bool

// Set reads on or off.
func (o *onOff) Set(text string) error {
	if text != "on" && text != "off" {
		return fmt.Errorf("want on or off")
	}
	*o = text == "on"
	return nil
}

// String returns on or off.
func (o *onOff) String() string {
	if *o {
		return "on"
	}
	return "off"
}

// Type names the kind of value in the help.
func (*onOff) Type() string { return "on|off" }

// secret is a password or token: nothing that prints settings shows it.
type secret string

const hidden = "***"

// Set takes the secret.
func (s *secret) Set(text string) error {
	*s = secret(text)
	return nil
}

// String hides the secret.
func (s *secret) String() string {
	if *s == "" {
		return ""
	}
	return hidden
}

// Type names the kind of value in the help.
func (*secret) Type() string { return "string" }

// address is where a server is. Printed, it does not show who is to log in there.
type address string

// Set takes the address.
func (a *address) Set(text string) error {
	*a = address(strings.TrimSpace(text))
	return nil
}

// String returns the address without its secrets.
func (a *address) String() string { return masked(string(*a)) }

// Type names the kind of value in the help.
func (*address) Type() string { return "url" }

// addresses are several, separated by commas.
type addresses string

// Set takes the addresses.
func (a *addresses) Set(text string) error {
	var all []string
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	*a = addresses(strings.Join(all, ","))
	return nil
}

// String returns the addresses without their secrets.
func (a *addresses) String() string {
	all := strings.Split(string(*a), ",")
	for k := range all {
		all[k] = masked(all[k])
	}
	return strings.Join(all, ",")
}

// Type names the kind of value in the help.
func (*addresses) Type() string { return "urls" }

// masked returns a URL without the secrets in it: who logs in, and what its
// parameters call a password. It must do for what is no URL, too.
func masked(u string) string {
	scheme, rest, found := strings.Cut(u, "://")
	if !found {
		scheme, rest = "", u
	} else {
		scheme += "://"
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = hidden + rest[i:]
	}
	place, query, asks := strings.Cut(rest, "?")
	if !strings.Contains(place, "@") && !numbered(place) {
		place = hidden // a password may have been cut in two
	}
	if !asks {
		return scheme + place
	}
	params := strings.Split(query, "&")
	for k, p := range params {
		if name, _, _ := strings.Cut(p, "="); strings.Contains(strings.ToLower(name), "password") {
			params[k] = name + "=" + hidden
		}
	}
	return scheme + place + "?" + strings.Join(params, "&")
}

// numbered reports whether nothing but a number stands where an address may have its port.
func numbered(place string) bool {
	host, _, _ := strings.Cut(place, "/")
	if i := strings.LastIndexByte(host, ']'); i >= 0 {
		host = host[i+1:]
	}
	_, port, _ := strings.Cut(host, ":")
	return strings.Trim(port, "0123456789") == ""
}
