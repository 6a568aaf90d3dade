package origin

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/agora-relay/agora"
)

const mozilla = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"

// asked is a request for a host, with headers as name and value.
func asked(method, host string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, "/it", nil)
	r.Host = host
	for k := 0; k < len(headers); k += 2 {
		r.Header.Add(headers[k], headers[k+1])
	}
	return r
}

func TestPagesOfTheSameHostMayAskInEverySpelling(t *testing.T) {
	for _, c := range []struct {
		origin, host string
		want         bool
	}{
		{"https://h.example", "h.example", true},
		{"https://h.example", "h.example:443", true},
		{"https://h.example:443", "h.example", true},
		{"http://h.example", "h.example", true},
		{"http://h.example", "h.example:80", true},
		{"http://h.example:80", "h.example", true},
		{"https://h.example:8443", "h.example:8443", true},
		{"HTTPS://H.Example", "h.eXample", true},
		{"https://h.example.", "h.example:443", true},
		{"https://h.example", "h.example.", true},
		{"https://[2001:db8::1]", "[2001:DB8:0::1]:443", true},
		{"https://192.0.2.1", "192.0.2.1:443", true},
		{"http://localhost/", "localhost", true},
		{"https://h.example", "h.example:80", false},
		{"http://h.example", "h.example:443", false},
		{"https://h.example", "h.example:8443", false},
		{"https://h.example:8443", "h.example", false},
		{"https://evil.example", "h.example", false},
		{"https://h.example.evil.example", "h.example", false},
		{"https://h.example@evil.example", "h.example", false},
		{"https://evil.example#@h.example", "h.example", false},
		{"https://h.example/x", "h.example", false},
		{"https://h.example:443:443", "h.example:443", false},
		{"https://h.example:65979", "h.example:443", false},
		{"https://", "", false},
		{"https://[h.example]", "h.example", false},
		{"h.example", "h.example", false},
		{"null", "null", false},
		{"null", "h.example", false},
	} {
		err := Policy{}.Check(asked("GET", c.host, "Origin", c.origin))
		if (err == nil) != c.want {
			t.Errorf("a page of %s asks %s: %v, want it answered: %t", c.origin, c.host, err, c.want)
		}
		if err != nil && agora.AsError(err).Code != agora.Forbidden {
			t.Errorf("a page of %s asks %s: %v, want FORBIDDEN", c.origin, c.host, err)
		}
	}
}

func TestListedPagesMayAskInEverySpelling(t *testing.T) {
	p := Policy{Listed: []string{"https://App.example.com:443/", "http://[::0001]:3000", "null"}}
	for origin, want := range map[string]bool{
		"https://app.example.com": true, "https://app.example.com:443": true, "https://app.example.com.": true, "http://[::1]:3000": true,
		"http://app.example.com": false, "https://app.example.com:8443": false, "https://x.app.example.com": false, "http://[::1]": false, "null": false,
	} {
		if err := p.Check(asked("GET", "a.example.com", "Origin", origin)); (err == nil) != want {
			t.Errorf("%s: %v, want it answered: %t", origin, err, want)
		}
	}
	for _, origin := range []string{"null", "https://any.example", "file://", "strange"} {
		if err := (Policy{Listed: []string{"*"}}).Check(asked("GET", "a.example.com", "Origin", origin)); err != nil {
			t.Errorf("all are listed, %s: %v", origin, err)
		}
		if err := (Policy{Listed: []string{"*"}, Closed: true}).Check(asked("GET", "a.example.com", "Origin", origin)); err == nil {
			t.Errorf("no page may ask, and %s may", origin)
		}
	}
}

func TestInDevelopmentAHostIsThisMachineOrListed(t *testing.T) {
	p := Policy{Loopback: true, Listed: []string{"https://a.example.com", "http://b.example.com:8080"}}
	for host, want := range map[string]bool{
		"localhost:8080": true, "127.0.0.1:8080": true, "[::1]:8080": true, "192.168.1.7": true, "agora:8080": true, "AGORA": true, "": true,
		"x.localhost": true, "host.docker.internal:8080": true, "h.test": true, "a.example.com": true, "a.example.com:443": true, "b.example.com:8080": true,
		"evil.example": false, "evil.example.:8080": false, "mac.local": false, "mac.local.:8080": false, "agora.default.svc.cluster.local": false,
		"b.example.com": false, "a.example.com:8080": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false,
		"localhost/.evil": false, "127.1": false, "local:x": false,
	} {
		if err := p.Check(asked("GET", host)); (err == nil) != want {
			t.Errorf("a request for %q: %v, want it answered: %t", host, err, want)
		}
	}
	for _, c := range []struct {
		origin, host string
		want         bool
	}{
		{"http://localhost:3000", "127.0.0.1:8080", true}, {"http://[::1]:3000", "127.0.0.1:8080", true}, {"http://127.0.0.2", "127.0.0.1:8080", true},
		{"http://192.168.1.7:8080", "192.168.1.7:8080", true}, {"http://192.168.1.7", "192.168.1.7:8080", false},
		{"http://mac.local:8080", "mac.local:8080", false}, {"http://evil.example:8080", "evil.example:8080", false}, {"null", "localhost:8080", false},
	} {
		if err := p.Check(asked("GET", c.host, "Origin", c.origin)); (err == nil) != c.want {
			t.Errorf("a page of %s asks %s: %v, want it answered: %t", c.origin, c.host, err, c.want)
		}
	}
}

func TestWithoutAnOriginABrowserSaysThatNoOtherSiteAsks(t *testing.T) {
	for site, want := range map[string]bool{"same-origin": true, "none": true, "same-site": false, "cross-site": false, "": false, "Same-Origin": false, "odd": false} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
			if err := (Policy{}).Check(asked(method, "h.example", "Sec-Fetch-Site", site)); (err == nil) != want {
				t.Errorf("%s with Sec-Fetch-Site %q: %v, want it answered: %t", method, site, err, want)
			}
		}
	}
	p := Policy{Listed: []string{"https://app.example"}}
	if err := p.Check(asked("GET", "h.example", "Sec-Fetch-Site", "cross-site", "Origin", "https://app.example")); err != nil {
		t.Errorf("a listed page of another site: %v", err)
	}
	for _, twice := range []string{"Origin", "Sec-Fetch-Site"} {
		err := Policy{}.Check(asked("GET", "h.example", twice, "none", twice, "none"))
		if err == nil || agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("%s twice: %v, want INVALID_REQUEST", twice, err)
		}
	}
}

func TestNoGetChangesAnythingForAPageThatIsNotSaid(t *testing.T) {
	p := Policy{Listed: []string{"https://app.example"}}
	for _, c := range []struct {
		about   string
		headers []string
		want    bool
	}{
		{"a program", nil, true},
		{"a program in Node", []string{"User-Agent", "node", "Sec-Fetch-Mode", "cors"}, true},
		{"what calls itself something else, with a reference", []string{"User-Agent", "curl/8", "Referer", "http://evil.example/"}, false},
		{"a browser over plain HTTP", []string{"User-Agent", mozilla}, false},
		{"a page of another host over plain HTTP", []string{"User-Agent", mozilla, "Referer", "http://evil.example/h.example"}, false},
		{"a page without an origin", []string{"User-Agent", mozilla, "Referer", "about:blank"}, false},
		{"a page of the same host over plain HTTP", []string{"User-Agent", mozilla, "Referer", "http://h.example/page?q#x"}, true},
		{"a listed page over plain HTTP", []string{"User-Agent", mozilla, "Referer", "https://app.example/"}, true},
		{"two references", []string{"User-Agent", mozilla, "Referer", "http://h.example/", "Referer", "http://h.example/"}, false},
		{"a reference with a name before the host", []string{"User-Agent", mozilla, "Referer", "http://h.example@evil.example/"}, false},
		{"an origin that is listed", []string{"User-Agent", mozilla, "Origin", "https://app.example"}, true},
		{"a program that calls itself a browser, with a token", []string{"User-Agent", mozilla, "Authorization", "Bearer x"}, true},
		{"a browser with a password in the URL", []string{"User-Agent", mozilla, "Authorization", "Basic x"}, false},
		{"a script of the same host", []string{"User-Agent", mozilla, "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}, true},
		{"an image of the same host", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, false},
		{"a person who follows a link from elsewhere", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false},
		{"an image of another site", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, false},
		{"an image, of which the site is left out", []string{"Sec-Fetch-Mode", "no-cors"}, false},
		{"a script, of which the site is left out", []string{"Sec-Fetch-Dest", "script"}, false},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			if err := p.CheckChange(asked(method, "h.example", c.headers...)); (err == nil) != c.want {
				t.Errorf("%s of %s: %v, want it answered: %t", method, c.about, err, c.want)
			}
		}
	}
	if err := p.CheckChange(asked("POST", "h.example", "User-Agent", mozilla)); err != nil {
		t.Errorf("POST of a program that calls itself a browser: %v: browsers say an origin with it", err)
	}
}

func TestMetadataIsReadAsHeadersAre(t *testing.T) {
	p := Policy{Listed: []string{"https://app.example"}, Loopback: true}
	for _, c := range []struct {
		metadata map[string][]string
		want     bool
	}{
		{map[string][]string{":authority": {"127.0.0.1:1"}}, true},
		{map[string][]string{":authority": {"127.0.0.1:1"}, "origin": {"https://app.example"}}, true},
		{map[string][]string{":authority": {"127.0.0.1:1"}, "origin": {"https://evil.example"}}, false},
		{map[string][]string{":authority": {"127.0.0.1:1"}, "sec-fetch-site": {"cross-site"}}, false},
		{map[string][]string{":authority": {"evil.example"}}, false},
		{nil, true},
	} {
		if err := p.CheckMetadata(c.metadata); (err == nil) != c.want {
			t.Errorf("%v: %v, want it answered: %t", c.metadata, err, c.want)
		}
	}
}
