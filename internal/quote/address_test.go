package quote

import "testing"

func TestNoAddressShowsASecret(t *testing.T) {
	for address, want := range map[string]string{
		"ws://h:1/ws":                      "ws://h:1/ws",
		"wss://u:secret@h/ws?token=t#f":    "wss://h/ws",
		"ws://u:se cret@h:1":               "an address that can't be read",
		"ws://h:1/%zz?token=secret":        "an address that can't be read",
		"h:1":                              "h:1",
		"redis-sentinel://:s@h:1?name=m&x": "redis-sentinel://h:1",
	} {
		if got := Address(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}
