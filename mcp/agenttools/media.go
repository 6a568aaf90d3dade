package agenttools

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// images are the types of images that models can see.
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// mediaContent returns bytes as content: an image, audio, or an embedded resource, which is the nth file of the answer.
func mediaContent(media string, data []byte, n int) mcp.Content {
	bare := mediaType(media, data)
	switch {
	case slices.Contains(images, bare):
		return &mcp.ImageContent{Data: data, MIMEType: bare}
	case strings.HasPrefix(bare, "audio/"):
		return &mcp.AudioContent{Data: data, MIMEType: bare}
	}
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: fmt.Sprintf("agora:answer/%d", n), MIMEType: bare, Blob: data}}
}

// mediaType returns a media type without its parameters; of one that leaves open what it is, such as image/*, what the
// bytes look like.
func mediaType(media string, data []byte) string {
	bare, _, err := mime.ParseMediaType(media)
	switch {
	case err != nil:
		return "application/octet-stream"
	case strings.HasSuffix(bare, "/*") || !strings.Contains(bare, "/"):
		bare, _, _ = mime.ParseMediaType(http.DetectContentType(data))
	}
	return bare
}

// isText reports whether bytes of a media type are text that a model reads.
func isText(media string) bool {
	bare, _, err := mime.ParseMediaType(media)
	return err == nil && (strings.HasPrefix(bare, "text/") && bare != "text/*" || bare == "application/json" || strings.HasSuffix(bare, "+json"))
}
