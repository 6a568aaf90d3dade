package agora_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
)

func TestTheItemOfAMediaTypeComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		media := rapid.SampledFrom([]string{"image/*", "audio/ogg", "text/plain;charset=utf-8", ""}).Draw(t, "media")
		item := rapid.Uint32().Draw(t, "item")
		if bare, got := agora.SplitItem(agora.ItemMedia(media, item)); bare != media || got != item {
			t.Fatalf("%q and %d came back as %q and %d", media, item, bare, got)
		}
	})
}

func TestWhatIsNoItemStaysInAMediaType(t *testing.T) {
	for _, media := range []string{"image/png", "a/b;item=", "a/b;item=0", "a/b;item=01", "a/b;item=+1", "a/b;item=4294967296", "a/b;item=1;q=1", ""} {
		if bare, item := agora.SplitItem(media); bare != media || item != 0 {
			t.Errorf("%q is %q and %d", media, bare, item)
		}
	}
}
