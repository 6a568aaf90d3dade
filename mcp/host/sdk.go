package host

import _ "github.com/modelcontextprotocol/go-sdk/mcp"
