package quote

import "net/url"

// Address returns the address of a server without what may be secret in it: user and password, query and fragment. One
// that can't be read may have a secret anywhere, and is not shown.
func Address(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that can't be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Addresses returns what Address says of each.
func Addresses(all []string) []string {
	shown := make([]string, len(all))
	for i, address := range all {
		shown[i] = Address(address)
	}
	return shown
}
