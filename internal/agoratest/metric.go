package agoratest

import (
	"bufio"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Metrics returns the values of some of its metrics without labels, by their names; what it does not tell is missing.
func (e *EdgeProcess) Metrics(names ...string) map[string]float64 {
	values := map[string]float64{}
	c := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get("http://" + e.admin + "/metrics")
	if err != nil {
		return values
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if !slices.Contains(names, name) {
			continue
		}
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values[name] = v
		}
	}
	return values
}
