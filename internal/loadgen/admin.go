package loadgen

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ask asks a process by its admin port what it takes.
func (s Servers) ask(at string) (l Look, err error) {
	c := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: s.TLS}}
	r, err := c.Get(strings.TrimSuffix(at, "/") + "/metrics")
	if err != nil {
		return Look{}, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return Look{}, fmt.Errorf("%s says %s", at, r.Status)
	}
	return parseMetrics(r.Body)
}

// parseMetrics takes what is wanted from the text that Prometheus reads.
func parseMetrics(text io.Reader) (l Look, err error) {
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue // not one of those below
		}
		switch name {
		case "process_cpu_seconds_total":
			l.CPU = time.Duration(v * float64(time.Second))
		case "process_resident_memory_bytes":
			l.RSS = int64(v)
		case "go_memstats_heap_inuse_bytes", "go_memstats_stack_inuse_bytes":
			l.Heap += int64(v)
		}
	}
	return l, lines.Err()
}
