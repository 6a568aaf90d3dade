package agora_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/agora-relay/agora"

// layers says which packages of this module each one may import. Arrows point
// down: a door never imports another door, and the core knows no door. "*" is
// everything but commands.
var layers = map[string][]string{
	".":                    {},
	"broker/record":        {"."},
	"broker/ledger":        {".", "broker/record", "internal/guard"},
	"broker/jslog":         {".", "broker/record", "internal/guard"},
	"broker/scan":          {".", "broker/jslog", "broker/ledger", "broker/record", "internal/guard", "internal/pause", "internal/turns"},
	"broker/natsd":         {"internal/endpoint", "internal/pause"},
	"broker":               {".", "broker/jslog", "broker/ledger", "broker/record", "broker/scan", "internal/framesize", "internal/guard", "internal/latency", "internal/pause", "internal/turns"},
	"presence":             {".", "internal/pause"},
	"wire":                 {".", "internal/eventdata", "internal/rawjson"},
	"wire/iat":             {".", "wire", "internal/rawjson"},
	"wire/aip":             {".", "internal/budget", "internal/rawjson"},
	"wire/p2p":             {".", "wire", "internal/budget", "internal/rawjson"},
	"wire/listing":         {"."},
	"spaces":               {".", "broker", "presence", "internal/eventdata", "internal/pump", "internal/rawjson"},
	"edge/relay":           {".", "broker", "edge/admission", "edge/approval", "presence", "internal/guard", "internal/lock"},
	"edge/call":            {".", "broker", "edge/admission", "presence", "internal/guard", "internal/pause"},
	"edge/approval":        {".", "broker", "edge/admission", "internal/latency", "internal/pause"},
	"edge/policy":          {"."},
	"edge/dial":            {".", "internal/endpoint"},
	"edge/directory":       {".", "broker", "presence", "spaces", "internal/budget"},
	"edge/admission":       {".", "presence", "internal/lock", "internal/pause", "internal/turns"},
	"edge/ownership":       {".", "broker", "edge/directory", "presence", "spaces", "internal/guard", "internal/latency", "internal/pause"},
	"edge":                 {".", "broker", "presence", "spaces", "edge/admission", "edge/approval", "edge/call", "edge/dial", "edge/relay", "edge/policy", "edge/directory", "edge/ownership", "internal/framesize", "internal/guard", "internal/latency", "internal/lock", "internal/pause", "internal/rawjson", "internal/trace"},
	"edge/operator":        {".", "broker", "presence", "spaces", "edge"},
	"edge/demux":           {".", "edge", "edge/admission", "internal/guard", "internal/pause", "internal/pump"},
	"edge/auth":            {".", "edge", "edge/policy", "internal/pause", "internal/reload"},
	"edge/ws/frame":        {".", "internal/buffer"},
	"edge/deliver":         {"edge", "edge/admission", "internal/buffer", "internal/pump"},
	"edge/ws":              {".", "edge/deliver", "edge", "edge/admission", "edge/carrier", "edge/directory", "edge/ws/frame", "presence", "spaces", "wire", "wire/p2p", "internal/budget", "internal/buffer", "internal/early", "internal/latency", "internal/pump", "internal/turns", "internal/origin"},
	"edge/web":             {".", "edge", "edge/admission", "internal/budget", "internal/origin", "internal/rawjson"},
	"edge/tools":           {".", "presence", "edge/admission", "internal/pause", "internal/workpath"},
	"edge/carrier":         {".", "edge", "edge/call", "edge/tools", "presence", "wire", "wire/aip", "wire/iat", "wire/p2p"},
	"edge/iat":             {"edge/deliver", ".", "presence", "edge", "edge/approval", "edge/call", "edge/directory", "edge/tools", "edge/web", "edge/ws/frame", "wire", "wire/iat", "internal/buffer", "internal/early", "internal/latency"},
	"edge/aip":             {".", "presence", "edge", "edge/admission", "edge/call", "edge/carrier", "edge/demux", "edge/dial", "edge/directory", "wire", "wire/aip", "internal/latency", "internal/pause", "internal/trace", "internal/origin"},
	"edge/p2p":             {".", "presence", "edge", "edge/admission", "edge/carrier", "edge/directory", "edge/web", "wire", "wire/p2p", "internal/latency", "internal/lock", "internal/p2phost", "internal/pause", "internal/origin"},
	"edge/rest":            {".", "edge/call", "edge/carrier", "edge/directory", "edge/web", "wire", "wire/listing"},
	"client":               {".", "wire", "wire/p2p", "internal/pause", "internal/rawjson"},
	"client/iat":           {".", "wire", "wire/listing", "internal/pause", "internal/workpath"},
	"client/aip":           {".", "wire/aip", "internal/endpoint", "internal/pause"},
	"sidecar":              {".", "client", "wire", "wire/p2p", "internal/bearer", "internal/p2phost", "internal/pause", "internal/origin"},
	"mcp/stdio":            {"internal/rawjson"},
	"mcp/inbox":            {".", "client", "internal/pause"},
	"mcp/host":             {".", "client", "mcp/inbox", "mcp/stdio", "wire", "internal/pause", "internal/quote", "internal/rawjson"},
	"mcp/member":           {".", "client", "mcp/stdio", "internal/pause", "internal/quote", "internal/rawjson", "wire"},
	"mcp/agenttools":       {".", "client", "internal/pause", "internal/rawjson"},
	"mcp/install":          {},
	"cmd/agora":            {"edge/auth", "cmd/agora/bench", "cmd/agora/cli", "cmd/agora/config", "cmd/agora/exit", "cmd/agora/logging", "cmd/agora/serve", "cmd/agora/version"},
	"cmd/agora/bench":      {".", "internal/loadgen", "internal/loadgen/soak", "internal/loadgen/verify", "internal/pause", "internal/plot", "cmd/agora/access", "cmd/agora/exit", "cmd/agora/logging"},
	"cmd/agora/cli":        {".", "client", "client/iat", "edge/aip", "edge/operator", "internal/pause", "internal/quote", "mcp/agenttools", "mcp/host", "mcp/install", "mcp/member", "mcp/stdio", "sidecar", "wire", "wire/listing", "cmd/agora/access", "cmd/agora/config", "cmd/agora/exit", "cmd/agora/logging", "cmd/agora/terminal", "cmd/agora/version"},
	"cmd/agora/serve":      {"*", "cmd/agora/certs", "cmd/agora/config", "cmd/agora/logging", "cmd/agora/terminal", "cmd/agora/version"},
	"cmd/agora/config":     {"broker", "edge", "edge/admission", "edge/aip", "edge/auth", "edge/dial", "edge/iat", "edge/p2p", "edge/policy", "edge/web", "edge/ws", "internal/trace", "internal/turns", "presence", "wire", "wire/iat", "cmd/agora/certs", "cmd/agora/exit", "cmd/agora/logging", "internal/origin"},
	"cmd/agora/logging":    {},
	"cmd/agora/version":    {},
	"cmd/agora/porttest":   {"internal/await"},
	"cmd/agora/access":     {"client"},
	"cmd/agora/certs":      {"internal/reload"},
	"cmd/agora/exit":       {".", "client", "cmd/agora/terminal"},
	"cmd/agora/terminal":   {"internal/quote"},
	"internal/agoratest":   {"*"},
	"internal/await":       {},
	"internal/endpoint":    {},
	"internal/faultnet":    {},
	"internal/framesize":   {".", "internal/rawjson"},
	"internal/party":       {".", "edge", "edge/admission", "edge/call", "edge/aip", "edge/carrier", "edge/iat", "edge/policy", "edge/rest", "edge/tools", "edge/web", "wire", "wire/aip", "wire/iat", "spaces", "client", "sidecar", "internal/agoratest", "internal/await", "internal/faultnet", "internal/servers"},
	"internal/turns":       {},
	"internal/quote":       {},
	"internal/workpath":    {},
	"internal/rawjson":     {},
	"internal/eventdata":   {".", "internal/rawjson"},
	"internal/budget":      {},
	"internal/guard":       {},
	"internal/buffer":      {},
	"internal/early":       {},
	"internal/latency":     {},
	"internal/trace":       {"."},
	"internal/reliability": {"internal/agoratest"},
	"internal/loadgen":     {".", "wire", "internal/loadgen/socket", "internal/pause"},
	"internal/pause":       {},
	"internal/lock":        {},
	"internal/origin":      {"."},
	"internal/bearer":      {"."},
	"internal/origintest":  {},
	"internal/oneseed":     {},
	"internal/simcluster":  {},
	"internal/simlog":      {"internal/simnet"},
	"internal/servers":     {"internal/await", "internal/faultnet"},
	"internal/simnet":      {},
	"internal/p2phost":     {".", "internal/early", "internal/origin"},
	"internal/plot":        {},
	"internal/pump":        {},
	"internal/reload":      {},
	"internal/overload":    {"internal/agoratest", "internal/loadgen"},
	"internal/drills":      {"client", "internal/faultnet", "internal/loadgen/soak", "internal/pause"},

	"internal/loadgen/verify": {},
	"internal/loadgen/soak":   {".", "client", "internal/faultnet", "internal/loadgen/verify", "internal/pause"},

	"examples/iat/host":     {"client/iat"},
	"examples/iat/subagent": {"client/iat"},
	"examples/aip/agent":    {"client/aip"},
	"examples/aip/caller":   {"client/aip"},
	"examples/aip/toolbox":  {"client/aip"},
	"examples/p2p/agent":    {},

	"internal/loadgen/socket": {"."},
}

// homes says which packages may import a library. What begins with the key
// belongs to it.
var homes = map[string][]string{
	"github.com/nats-io/":                 {"broker", "broker/jslog", "broker/scan", "broker/natsd", "internal/simlog"},
	"github.com/synadia-io/orbit.go":      {"broker/jslog"},
	"github.com/redis/go-redis":           {"presence"},
	"github.com/alicebob/miniredis":       {"presence"},
	"github.com/yuin/gopher-lua":          {"presence"},
	"github.com/go-jose/":                 {"edge/auth"},
	"github.com/gorilla/websocket":        {"edge/ws", "edge/iat", "client", "internal/p2phost"},
	"github.com/santhosh-tekuri/":         {"edge/tools"},
	"github.com/prometheus/client_golang": {"cmd/agora/serve"},
	"go.opentelemetry.io/":                {"internal/trace"},
	"github.com/go-logr/logr":             {"internal/trace"}, // what OpenTelemetry is given as its log
	"github.com/HdrHistogram/":            {"internal/loadgen", "internal/loadgen/verify"},
	"github.com/pires/go-proxyproto":      {"cmd/agora/serve", "cmd/agora/porttest"},
	"github.com/spf13/cobra":              {"cmd/agora", "cmd/agora/bench", "cmd/agora/cli", "cmd/agora/config", "cmd/agora/exit", "cmd/agora/serve", "cmd/agora/version"},
	"github.com/spf13/pflag":              {"cmd/agora", "cmd/agora/access", "cmd/agora/bench", "cmd/agora/cli", "cmd/agora/config", "cmd/agora/serve"},
	"go.yaml.in/yaml":                     {"cmd/agora/config", "edge/policy"},
	"golang.org/x/net/http2":              {"cmd/agora/porttest"},
	"golang.org/x/term":                   {"cmd/agora/terminal"},
	"golang.org/x/text/unicode/norm":      {"."}, // which form of Unicode an id has: the one thing that the ground needs beside the standard library
	"golang.org/x/sys/":                   {"edge/web", "mcp/stdio"},
	"github.com/BurntSushi/toml":          {"mcp/install"},
	"github.com/google/jsonschema-go":     {"mcp/host"}, // what the library above describes tools with
	"github.com/modelcontextprotocol/":    {"mcp/host", "mcp/stdio", "mcp/member", "mcp/agenttools", "cmd/agora/cli"},
	"google.golang.org/grpc":              {"wire/aip", "edge/aip", "client/aip", "internal/party"},
	"google.golang.org/protobuf":          {"wire/aip", "edge/aip", "client/aip", "edge/p2p"}, // edge/p2p: the messages of relays
	"github.com/libp2p/":                  {"internal/p2phost", "edge/p2p", "sidecar"},
	"github.com/multiformats/":            {"internal/p2phost", "edge/p2p", "sidecar"},
}

// testLibraries may be used by every test, and by the packages that are for tests alone:
// tests look into the log and into presence with clients of their own.
var testLibraries = []string{
	"go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf", // what a collector is told
	"go.yaml.in/yaml",                        // what is deployed is held against the program
	"github.com/modelcontextprotocol/go-sdk", // tests are hosts
	"go.uber.org/goleak", "pgregory.net/rapid",
	"github.com/santhosh-tekuri/jsonschema",                               // tests hold frames against their schemas
	"github.com/bufbuild/protocompile",                                    // tests compile what edges speak
	"github.com/libp2p/go-libp2p", "github.com/multiformats/go-multiaddr", // tests are peers
	"google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc/errdetails",
	"github.com/go-jose/go-jose", // tests sign tokens
	"golang.org/x/net/http2",     // tests speak frames that no client does
	"github.com/gorilla/websocket", "github.com/coder/websocket",
	"github.com/nats-io/nats.go", "github.com/nats-io/nkeys", "github.com/nats-io/jwt", "github.com/redis/go-redis",
}

var testPackages = []string{"internal/agoratest", "internal/servers"}

// pkg is what go list says of a package.
type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

// name is the package's path inside the module.
func (p pkg) name() string { return inside(p.ImportPath) }

// inside returns a path below the module; the path itself for those of others.
func inside(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func TestPackagesImportOnlyWhatLiesBelowThem(t *testing.T) {
	for _, p := range packages(t) {
		may, ok := layers[p.name()]
		if !ok {
			t.Errorf("package %s stands in no layer: say in layers what it may import", p.name())
			continue
		}
		for _, path := range p.Imports {
			to := inside(path)
			if to == path && path != module {
				continue // not ours
			}
			if slices.Contains(may, to) || slices.Contains(may, "*") && !strings.HasPrefix(to, "cmd/") {
				continue
			}
			t.Errorf("%s imports %s", p.name(), to)
		}
	}
}

// mapped is an item of the map: one package or several, and the beginning of their duty.
var (
	mapped      = regexp.MustCompile("(?m)^- (`[^`]+`(?:, `[^`]+`)*)(?: \\(the root\\))?: \\S")
	mappedNames = regexp.MustCompile("`([^`]+)`")
)

// TestTheMapListsEveryPackage holds that the section Map of ARCHITECTURE.md has each package of layers once.
func TestTheMapListsEveryPackage(t *testing.T) {
	text := page(t, "ARCHITECTURE.md")
	_, section, ok := strings.Cut(text, "\n## Map\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section Map")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	items := map[string]int{}
	for _, m := range mapped.FindAllStringSubmatch(section, -1) {
		for _, name := range mappedNames.FindAllStringSubmatch(m[1], -1) {
			items[name[1]]++
		}
	}
	for name := range layers {
		if name == "." {
			name = "agora"
		}
		if items[name] != 1 {
			t.Errorf("the map of ARCHITECTURE.md has %s in %d items: it is to have one line that begins with - `%[1]s`: and says the package's duty", name, items[name])
		}
		delete(items, name)
	}
	for name := range items {
		t.Errorf("the map of ARCHITECTURE.md has an item for %s, which is no package of layers in arch_test.go", name)
	}
}

// page returns the text of a document.
func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestLibrariesStayInTheirHomes(t *testing.T) {
	for _, p := range packages(t) {
		for _, path := range p.Imports {
			if foreign(path) && !lives(path, p.name()) && !(slices.Contains(testPackages, p.name()) && forTests(path)) {
				t.Errorf("%s imports %s, whose home is %v", p.name(), path, homeOf(path))
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			if foreign(path) && !lives(path, p.name()) && !forTests(path) {
				t.Errorf("tests of %s import %s, whose home is %v", p.name(), path, homeOf(path))
			}
		}
	}
}

func forTests(path string) bool {
	return slices.ContainsFunc(testLibraries, func(l string) bool { return strings.HasPrefix(path, l) })
}

// foreign tells a library from this module and the standard library, whose
// paths begin with a name that has no dot.
func foreign(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".") && path != module && !strings.HasPrefix(path, module+"/")
}

func lives(path, name string) bool { return slices.Contains(homeOf(path), name) }

func homeOf(path string) []string {
	for library, at := range homes {
		if strings.HasPrefix(path, library) {
			return at
		}
	}
	return nil
}
