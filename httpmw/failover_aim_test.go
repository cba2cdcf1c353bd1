package httpmw_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
)

// seen is a base transport that keeps what it is sent, and answers all but the last
// of several upstreams with 503.
type seen struct {
	last string // host that answers well
	urls []string
	reqs []*http.Request
	resp func(*http.Request) *http.Response
}

func (s *seen) RoundTrip(req *http.Request) (*http.Response, error) {
	s.urls = append(s.urls, req.URL.String())
	s.reqs = append(s.reqs, req)
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		req.Body.Close()
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	if req.URL.Host == s.last && s.resp != nil {
		resp := s.resp(req)
		resp.Request = req
		return resp, nil
	}
	code := http.StatusServiceUnavailable
	if req.URL.Host == s.last {
		code = http.StatusOK
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

func aimed(t *testing.T, base *seen, upstreams []httpmw.Upstream, opts ...httpmw.Option) *http.Client {
	t.Helper()
	k := newKit(t, quick())
	transport, err := httpmw.Failover(base, k, upstreams, opts...)
	require.NoError(t, err)
	return &http.Client{Transport: transport}
}

// What follows on the front in a request's URL follows on the upstream's, escaped as
// it was, with its query; the host is the upstream's.
func TestARequestIsAimedAtEachUpstream(t *testing.T) {
	for name, tc := range map[string]struct {
		front, url string
		want       []string
	}{
		"a path and a query":     {"", "http://a.test/v1/items/7?x=1&y=a%2Fb", []string{"http://a.test/v1/items/7?x=1&y=a%2Fb", "https://b.test:8443/items/7?x=1&y=a%2Fb"}},
		"an escaped slash":       {"", "http://a.test/v1/items/a%2Fb", []string{"http://a.test/v1/items/a%2Fb", "https://b.test:8443/items/a%2Fb"}},
		"an escaped space":       {"", "http://a.test/v1/a%20b", []string{"http://a.test/v1/a%20b", "https://b.test:8443/a%20b"}},
		"the front itself":       {"", "http://a.test/v1", []string{"http://a.test/v1", "https://b.test:8443"}},
		"its port named":         {"", "http://a.test:80/v1/x", []string{"http://a.test/v1/x", "https://b.test:8443/x"}},
		"its host in upper case": {"", "http://A.Test/v1/x", []string{"http://a.test/v1/x", "https://b.test:8443/x"}},
		"a front of no upstream": {"http://llm", "http://llm/x", []string{"http://a.test/v1/x", "https://b.test:8443/x"}},
		"a front with a path":    {"http://llm/api/", "http://llm/api/x/", []string{"http://a.test/v1/x/", "https://b.test:8443/x/"}},
	} {
		t.Run(name, func(t *testing.T) {
			base := &seen{last: "b.test:8443"}
			var opts []httpmw.Option
			if tc.front != "" {
				opts = append(opts, httpmw.WithFront(tc.front))
			}
			client := aimed(t, base, []httpmw.Upstream{{URL: "http://a.test/v1/"}, {URL: "https://b.test:8443"}}, opts...)
			req, err := http.NewRequest(http.MethodGet, tc.url, nil)
			require.NoError(t, err)
			before := req.URL.String()
			resp, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, tc.want, base.urls)
			require.Equal(t, "https://b.test:8443", httpmw.AnsweredBy(resp))
			require.Equal(t, before, req.URL.String())
			for _, out := range base.reqs {
				require.Empty(t, out.Host, "the URL's counts")
			}
		})
	}
}

// A request that the front does not cover is not sent: not to the upstreams, and not
// to where it leads. The error names no user and no query (H4).
func TestARequestForElsewhereIsRefused(t *testing.T) {
	base := &seen{last: "b.test"}
	client := aimed(t, base, []httpmw.Upstream{{URL: "http://a.test/v1"}, {URL: "http://b.test"}})
	for _, url := range []string{
		"http://b.test/v1/x", "http://a.test/v2/x", "http://a.test/v1x", "https://a.test/v1/x", "http://user:pw@evil.test/v1/x?token=abc",
	} {
		body := &opaque{Reader: strings.NewReader("x")}
		req, err := http.NewRequest(http.MethodPost, url, body)
		require.NoError(t, err)
		_, err = client.Transport.RoundTrip(req)
		require.ErrorContains(t, err, "and not for http://a.test:80/v1")
		require.NotContains(t, err.Error(), "pw")
		require.NotContains(t, err.Error(), "abc")
		require.Equal(t, 1, body.closed())
	}
	require.Empty(t, base.urls)
}

// H4: the caller's credentials go to the front's own origin, and elsewhere only where
// the list says so. Prepare sets an upstream's own.
func TestCredentialsStayWithTheFrontsOrigin(t *testing.T) {
	base := &seen{last: "d.test"}
	client := aimed(t, base, []httpmw.Upstream{
		{URL: "http://a.test/one"},
		{URL: "http://b.test", Prepare: func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer b")
			return nil
		}},
		{URL: "http://c.test", Credentials: true},
		{Instances: []string{"http://a.test/two", "http://d.test"}},
		{URL: "http://d.test/last"},
	}, httpmw.WithCredentialHeaders("X-Tenant-Token"))
	req, err := http.NewRequest(http.MethodGet, "http://a.test/one/x", nil)
	require.NoError(t, err)
	secrets := map[string]string{
		"Authorization": "Bearer a", "Cookie": "session=1", "X-Api-Key": "k", "X-Tenant-Token": "t", "Proxy-Authorization": "p",
	}
	for name, value := range secrets {
		req.Header.Set(name, value)
	}
	req.Header.Set("Accept", "text/plain")
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.GreaterOrEqual(t, len(base.reqs), 4)
	for _, out := range base.reqs {
		require.Equal(t, "text/plain", out.Header.Get("Accept"))
		for name, value := range secrets {
			switch at := out.URL.String(); {
			case at == "http://a.test/one/x", out.URL.Host == "c.test":
				require.Equal(t, value, out.Header.Get(name), at)
			case out.URL.Host == "b.test" && name == "Authorization":
				require.Equal(t, "Bearer b", out.Header.Get(name), at)
			default:
				require.Empty(t, out.Header.Get(name), "%s at %s", name, at)
			}
		}
	}
	for name, value := range secrets {
		require.Equal(t, value, req.Header.Get(name))
	}
}

// The cookies of an upstream that gets no credentials do not reach the jar, which
// would send them to the others.
func TestCookiesOfAStrangerAreDropped(t *testing.T) {
	for trusted, want := range map[bool]int{false: 0, true: 1} {
		base := &seen{last: "b.test", resp: func(*http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Set-Cookie": {"id=b"}}, Body: http.NoBody}
		}}
		client := aimed(t, base, []httpmw.Upstream{{URL: "http://a.test"}, {URL: "http://b.test", Credentials: trusted}})
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		client.Jar = jar
		resp, err := client.Get("http://a.test/")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Len(t, jar.Cookies(resp.Request.URL), want)
	}
}

// A redirect below an upstream comes back as one below the front, and any other in
// full: a client that follows it comes here, and gets an error for elsewhere.
func TestRedirectsLeadBackToTheFront(t *testing.T) {
	for location, tc := range map[string]struct{ location, err string }{
		"http://b.test/api/other?x=1": {location: "http://a.test/v1/other?x=1"},
		"/api/other":                  {location: "http://a.test/v1/other"},
		"other":                       {location: "http://a.test/v1/other"},
		"/elsewhere":                  {location: "http://b.test/elsewhere", err: "for http://b.test:80"},
		"http://evil.test/x":          {location: "http://evil.test/x", err: "for http://evil.test:80"},
	} {
		base := &seen{last: "b.test"}
		base.resp = func(req *http.Request) *http.Response {
			if strings.HasSuffix(req.URL.Path, "/other") {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
			}
			return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {location}}, Body: http.NoBody}
		}
		client := aimed(t, base, []httpmw.Upstream{{URL: "http://a.test/v1"}, {URL: "http://b.test/api"}})
		var led []string
		client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
			led = append(led, req.URL.String())
			return nil
		}
		resp, err := client.Get("http://a.test/v1/x")
		require.Equal(t, []string{tc.location}, led, location)
		for _, url := range base.urls {
			require.NotContains(t, url, "evil")
			require.NotContains(t, url, "elsewhere")
		}
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
}

// Prepare may put another body in the place of the request's.
func TestPrepareMayChangeTheBody(t *testing.T) {
	overLinks(t, func(t *testing.T, l link) {
		model := func(name string) func(*http.Request) error {
			return func(req *http.Request) error {
				text, err := io.ReadAll(req.Body)
				if err != nil {
					return err
				}
				if err := req.Body.Close(); err != nil {
					return err
				}
				text = bytes.ReplaceAll(text, []byte("any"), []byte(name))
				req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
				return nil
			}
		}
		down := status(http.StatusServiceUnavailable, "")
		c := network(t, l, map[string]*script{"a": answers(down), "b": answers(status(http.StatusOK, "B"))})
		c.over(t, holdfast.Config{Default: unhurried()}, []httpmw.Upstream{
			{URL: l.host("a"), Name: "a", Prepare: model("model-of-a")}, {URL: l.host("b"), Name: "b", Prepare: model("m")},
		})
		for range 2 {
			_, text, err := c.do(t.Context(), http.MethodPut, l.host("a")+"/chat", `{"model":"any"}`)
			require.NoError(t, err)
			require.Equal(t, "B", text)
		}
		require.Equal(t, `{"model":"model-of-a"}`, c.scripts["a"].hits()[0].body)
		require.EqualValues(t, len(`{"model":"model-of-a"}`), c.scripts["a"].hits()[0].length)
		require.Equal(t, `{"model":"m"}`, c.scripts["b"].hits()[1].body)
	})
}

func TestBadUpstreamsAreRefused(t *testing.T) {
	k := newKit(t, holdfast.Policy{})
	for text, ups := range map[string][]httpmw.Upstream{
		"Upstreams: there is none":                        nil,
		"Upstreams[0].URL: is missing":                    {{}},
		"Upstreams[1].URL: must have a scheme":            {{URL: "http://a"}, {URL: "b.test"}},
		"Upstreams[0].URL: must not have a user":          {{URL: "http://u:pw@a"}},
		"Upstreams[0].URL: must not have a query":         {{URL: "http://a?token=pw"}},
		"Upstreams[0].URL: is no URL":                     {{URL: "http://a:pw/"}},
		"Upstreams[0].URL: is set beside Instances":       {{URL: "http://a", Instances: []string{"http://b"}}},
		"Upstreams[0].Instances[1] = http://b:80":         {{Instances: []string{"http://b", "http://b:80/"}}},
		"Upstreams[0].Instances[0]: is missing":           {{Instances: []string{""}}},
		"Upstreams[0].Instances = 65":                     {{Instances: make([]string, 65)}},
		"Upstreams[0].Outlier.MinCalls = -1":              {{URL: "http://a", Outlier: outlierMinCalls(-1)}},
		"Upstreams[1] = http://a:80: is the same as":      {{URL: "http://a"}, {URL: "http://a/"}},
		"Upstreams[1] = X|m: is the same as Upstreams[0]": {{URL: "http://a", Name: "X", Resource: "m"}, {URL: "http://b", Name: "X", Resource: "m"}},
	} {
		_, err := httpmw.Failover(nil, k, ups)
		require.ErrorContains(t, err, text)
		require.NotContains(t, err.Error(), "pw")
	}
	good := []httpmw.Upstream{{URL: "http://a"}}
	_, err := httpmw.Failover(nil, k, good, httpmw.WithFront("llm"))
	require.ErrorContains(t, err, "WithFront: must have a scheme")
	_, err = httpmw.Failover(nil, k, good, httpmw.WithCredentialHeaders("a b"))
	require.ErrorContains(t, err, "WithCredentialHeaders")
	_, err = httpmw.Failover(nil, nil, good)
	require.ErrorContains(t, err, "the kit is nil")
	_, err = httpmw.New(nil, k, httpmw.WithFront("http://llm"))
	require.EqualError(t, err, "httpmw: WithFront: is for Failover")
	require.Empty(t, httpmw.AnsweredBy(nil))

	_, err = httpmw.Failover(nil, k, good)
	require.NoError(t, err)
	e, err := k.Explain("GET /x")
	require.NoError(t, err)
	require.Contains(t, e.String(), "failover: http://a:80; the next has its turn at once after a refusal or a failure")
	e, err = k.Explain("POST /x")
	require.NoError(t, err)
	require.Contains(t, e.String(), "only if nothing was sent")
}
