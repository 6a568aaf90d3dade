package agoratest

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Metric returns the value of one of its metrics without labels; ok is false when it does not tell.
func (e *EdgeProcess) Metric(name string) (value float64, ok bool) {
	c := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get("http://" + e.admin + "/metrics")
	if err != nil {
		return 0, false
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
			value, err = strconv.ParseFloat(text, 64)
			return value, err == nil
		}
	}
	return 0, false
}
