package telemetry_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/memnet"
	"github.com/holdfast-go/holdfast/telemetry"
)

func get(t testing.TB, h http.Handler, address string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, address, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// shownText returns what of a page is text, as a reader without JavaScript sees it.
func shownText(page string) string {
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(html.UnescapeString(text)), " ")
}

// asJSON is what a test wants of the page's JSON.
type asJSON struct {
	Kits     []string
	States   map[string]int
	Shadows  map[string]int
	Hidden   int
	Breakers []struct {
		Kit, Name, State, Reason, Note string
		For                            *float64 `json:"for_s"`
		Left                           float64  `json:"left_s"`
		Cooldown                       float64  `json:"cooldown_s"`
		CutFor                         *float64 `json:"not_closed_for_s"`
		CutReason                      string   `json:"not_closed_reason"`
		FailureRate                    float64  `json:"failure_rate"`
		Results, Failures              int
		Opens, Refused                 uint64
		RefusedSince                   uint64 `json:"refused_since_closed"`
		Probes                         int
		Window                         []struct{ Results, Failures int }
		Changes                        []struct{ From, To, Reason string }
	}
	Bulkheads []struct {
		Name           string
		InUse          int `json:"in_use"`
		Limit, Waiting int
	}
	Budgets []struct{ Tokens, Cap float64 }
	Methods []struct {
		Name                         string
		Calls, OK, Attempts, Refused uint64
	}
	Policies []struct {
		Entry, Wire string
		Layers      []struct{ Name, Text, From string }
	}
	Changes []struct{ Name, To string }
}

func decode(t testing.TB, h http.Handler, address string) (v asJSON) {
	t.Helper()
	w := get(t, h, address, "Accept", "application/json")
	require.Equal(t, 200, w.Code, w.Body)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v))
	return v
}

// The page tells the story of an outage: what is cut off, since when, why, and what
// it costs; as text without JavaScript and as JSON at the same address.
func TestThePageTellsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quick()
		p.Breaker = &breaker.Config{Window: breaker.Window{Span: 10 * time.Second}, MinCalls: 10, FailureRate: 0.5, Cooldown: 10 * time.Second, Jitter: breaker.NoJitter, ProbeSuccesses: 2}
		k, err := holdfast.New(holdfast.Config{Name: "shop", Default: p, Methods: map[string]holdfast.Policy{"insert": {Safety: call.Unsafe}}})
		require.NoError(t, err)
		page := telemetry.Page(k)
		defer page.Close()
		require.Contains(t, shownText(get(t, page, "/").Body.String()), "No call has been made yet.")

		for range 5 {
			require.NoError(t, do(t.Context(), k, read, nil))
			require.Error(t, do(t.Context(), k, read, errDown))
		}
		for range 9 {
			require.ErrorIs(t, do(t.Context(), k, read, nil), breaker.ErrOpen)
		}
		require.NoError(t, do(t.Context(), k, call.Info{Target: "other", Method: "select"}, nil))
		time.Sleep(4 * time.Second)

		v := decode(t, page, "/debug/holdfast?x=1")
		require.Equal(t, []string{"shop"}, v.Kits)
		require.Equal(t, map[string]int{"open": 1, "closed": 1, "half_open": 0, "forced_open": 0, "disabled": 0}, v.States)
		b := v.Breakers[0]
		require.Equal(t, []string{"db", "open", "failure_rate"}, []string{b.Name, b.State, b.Reason})
		require.Equal(t, []float64{4, 10, 6, 4}, []float64{*b.For, b.Cooldown, b.Left, *b.CutFor})
		require.EqualValues(t, []uint64{1, 9, 9}, []uint64{b.Opens, b.Refused, b.RefusedSince})
		require.Equal(t, "other", v.Breakers[1].Name)
		require.Equal(t, 1, v.Breakers[1].Results)
		require.Len(t, v.Breakers[1].Window, 10)
		require.Len(t, v.Changes, 1)
		require.Equal(t, "select", v.Methods[0].Name)
		require.EqualValues(t, 9, v.Methods[0].Refused)
		require.EqualValues(t, 11, v.Methods[0].Attempts)
		require.Equal(t, "insert", v.Policies[1].Entry)
		froms := map[string]string{}
		for _, l := range v.Policies[1].Layers {
			froms[l.Name] = l.From
			require.NotEmpty(t, l.Text)
		}
		require.Equal(t, map[string]string{"fallback": "Standard", "retry": "Default", "breaker": "Default", "timeout": "Default", "bulkhead": "Default"}, froms)

		text := shownText(get(t, page, "/").Body.String())
		for _, want := range []string{
			"1 of 2 breakers not closed.", "1 open", "1 closed", "cut off for 4 s: too many failures, 5 of 10", "6 s left of 10 s",
			"9 calls turned away since then", "closed → open: too many failures", "opens at 50 % failures in 10 s (at least 10)", "from Default", "from Standard",
		} {
			require.Contains(t, text, want)
		}
		time.Sleep(7 * time.Second)
		v = decode(t, page, "/")
		require.Equal(t, "half_open", v.Breakers[0].State, "nobody has called since")
		require.EqualValues(t, 1, *v.Breakers[0].For)
		require.NoError(t, do(t.Context(), k, read, nil))
		require.Contains(t, shownText(get(t, page, "/").Body.String()), "0 of 1 probes in flight · 1 of 2 good ones, to close")
		require.NoError(t, do(t.Context(), k, read, nil))
		require.Contains(t, shownText(get(t, page, "/").Body.String()), "All 2 breakers are closed.")
	})
}

// A name is shown as it is written, whatever is in it, but for secrets (H4).
func TestH4_EverythingIsEscaped(t *testing.T) {
	evil := `<script>alert("x")</script>'"><img src=x onerror=alert(1)>`
	p := quick()
	k, err := holdfast.New(holdfast.Config{Name: evil, Default: p, Methods: map[string]holdfast.Policy{evil: {}}})
	require.NoError(t, err)
	page := telemetry.Page(k).Control(func(*http.Request) (string, error) { return evil, nil })
	defer page.Close()
	open(t, k, call.Info{Target: evil, Method: evil})
	require.NoError(t, do(t.Context(), k, call.Info{Target: "https://user:secret@api.example.com/?token=secret", Method: evil}, nil))
	for _, b := range k.Breakers() {
		b.ForceOpen(evil)
	}
	for _, address := range []string{"/", "/?q=" + url.QueryEscape(evil)} {
		body := get(t, page, address).Body.String()
		require.NotContains(t, body, "<script>alert")
		require.NotContains(t, body, "<img")
		require.Contains(t, body, "&lt;script&gt;")
		require.NotContains(t, body, "secret")
	}
	require.NotContains(t, get(t, page, "/", "Accept", "application/json").Body.String(), "secret")
}

// Nothing is loaded from elsewhere, and a browser is told to allow no more than
// the page has.
func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	page := telemetry.Page(newKit(t, "shop", quick()))
	defer page.Close()
	w := get(t, page, "/")
	policy := w.Header().Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	require.Contains(t, policy, "frame-ancestors 'none'")
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	body := w.Body.String()
	require.NotContains(t, body, " style=")
	require.NotRegexp(t, `\son[a-z]+=`, body)
	for _, link := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
		require.True(t, strings.HasPrefix(link[1], "?"), link[1])
		if strings.HasPrefix(link[1], "?asset=") {
			asset := get(t, page, "/any/path"+link[1])
			require.Equal(t, 200, asset.Code)
			require.NotContains(t, asset.Body.String(), "url(")
			require.NotContains(t, asset.Header().Get("Content-Type"), "octet")
		}
	}
	for _, name := range []string{"page.html", "../page.go", "none.css", ""} {
		require.Equal(t, 404, get(t, page, "/?asset="+url.QueryEscape(name)).Code, name)
	}
	require.Equal(t, 400, get(t, page, "/?n=-1").Code)
	require.Equal(t, 400, get(t, page, "/?n=many").Code)
}

func TestWhoAcceptsJSONGetsIt(t *testing.T) {
	page := telemetry.Page()
	defer page.Close()
	for accept, want := range map[string]string{
		"": "text/html", "*/*": "text/html", "application/json": "application/json",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html",
		"application/json;q=0.9, text/html;q=0.8":                         "application/json",
		"application/json;q=0.5, text/html":                               "text/html",
		"application/json;q=0":                                            "text/html",
	} {
		w := get(t, page, "/", "Accept", accept)
		require.True(t, strings.HasPrefix(w.Header().Get("Content-Type"), want), accept)
		require.Equal(t, "Accept", w.Header().Get("Vary"))
	}
}

func post(h http.Handler, form url.Values, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://ops.internal/page?q=d", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Read-only by default; with Control, an operator whom the caller's function lets,
// from the page itself, may act.
func TestOperatorsAct(t *testing.T) {
	k := newKit(t, "shop", quick())
	require.NoError(t, do(t.Context(), k, read, nil))
	var db *breaker.Breaker
	for _, b := range k.Breakers() {
		db = b
	}
	form := func(action, reason string) url.Values {
		return url.Values{"kit": {"0"}, "breaker": {"db"}, "action": {action}, "reason": {reason}}
	}
	page := telemetry.Page(k)
	defer page.Close()
	w := post(page, form("force_open", "why not"))
	require.Equal(t, 405, w.Code)
	require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	require.Equal(t, breaker.Closed, db.State())
	require.NotContains(t, get(t, page, "/").Body.String(), `method="post"`)

	page.Control(func(r *http.Request) (string, error) {
		if name, password, _ := r.BasicAuth(); password == "right" {
			return name, nil
		}
		return "", errors.New("a reason that is nobody's business")
	})
	const right = "Basic YW5hOnJpZ2h0" // ana:right
	require.NotContains(t, get(t, page, "/").Body.String(), `method="post"`, "who may not act sees no buttons")
	require.Contains(t, get(t, page, "/", "Authorization", right).Body.String(), `method="post"`)
	w = post(page, form("force_open", "why not"))
	require.Equal(t, 403, w.Code)
	require.NotContains(t, w.Body.String(), "business")
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example.com"}, {"Origin", "null"}} {
		require.Equal(t, 403, post(page, form("force_open", "why not"), append(header, "Authorization", right)...).Code, header)
	}
	require.Equal(t, breaker.Closed, db.State())

	for _, step := range []struct {
		action, reason string
		code           int
		state          breaker.State
	}{
		{"force_open", " ", 400, breaker.Closed},
		{"force_open", strings.Repeat("x", 201), 400, breaker.Closed},
		{"force_open", "it moves", 303, breaker.ForcedOpen},
		{"disable", "", 303, breaker.ForcedOpen}, // Disable does not end a forced open
		{"release", "", 303, breaker.Open},
		{"disable", "", 303, breaker.Disabled},
		{"enable", "", 303, breaker.Closed},
		{"force_open", "again", 303, breaker.ForcedOpen},
		{"reset", "", 303, breaker.Closed},
		{"explode", "", 400, breaker.Closed},
	} {
		w := post(page, form(step.action, step.reason), "Authorization", right, "Sec-Fetch-Site", "same-origin")
		require.Equal(t, step.code, w.Code, step)
		require.Equal(t, step.state, db.State(), step)
		if step.code == 303 {
			require.Equal(t, "?q=d", w.Header().Get("Location"), "whatever prefix was stripped, and no other host")
		}
		if step.reason == "it moves" {
			require.Equal(t, "ana: it moves", db.Inspect().Note)
		}
	}
	for _, bad := range []url.Values{
		{"kit": {"1"}, "breaker": {"db"}, "action": {"reset"}}, {"kit": {"x"}, "breaker": {"db"}, "action": {"reset"}},
		{"kit": {"0"}, "breaker": {"none"}, "action": {"reset"}}, {},
	} {
		require.Equal(t, 404, post(page, bad, "Authorization", right).Code, bad)
	}
	require.Equal(t, 400, post(page, url.Values{"reason": {strings.Repeat("x", 20<<10)}}, "Authorization", right).Code)
	r := httptest.NewRequest(http.MethodDelete, "/", nil)
	w = httptest.NewRecorder()
	page.ServeHTTP(w, r)
	require.Equal(t, 405, w.Code)
	require.Panics(t, func() { page.Control(nil) })
}

// The live page sends itself when something has changed, at once after a
// transition; and leaves nothing behind when its reader goes, or it is closed.
func TestTheLivePageLeavesNothingBehind(t *testing.T) {
	for name, end := range map[string]func(cancel func(), page *telemetry.Operations){
		"the reader goes":    func(cancel func(), _ *telemetry.Operations) { cancel() },
		"the page is closed": func(_ func(), page *telemetry.Operations) { page.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
				k := newKit(t, "shop", quick())
				page := telemetry.Page(k)
				defer page.Close()
				wire := memnet.Start(t, memnet.HTTP1, page)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, wire.URL+"/?live", nil)
				require.NoError(t, err)
				resp, err := wire.Transport.RoundTrip(req)
				require.NoError(t, err)
				require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
				lines := bufio.NewReader(resp.Body)
				next := func() string {
					var all strings.Builder
					for {
						line, err := lines.ReadString('\n')
						if err != nil || line == "\n" {
							return all.String()
						}
						require.True(t, strings.HasPrefix(line, "data: "), line)
						all.WriteString(strings.TrimPrefix(line, "data: "))
					}
				}
				require.Contains(t, next(), "No call has been made yet.")
				began := time.Now()
				open(t, k, read)
				require.Contains(t, next(), "The breaker is not closed.")
				require.Less(t, time.Since(began), time.Second)
				end(cancel, page)
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		})
	}
}

// The page's history is bounded.
func TestTheHistoryIsBounded(t *testing.T) {
	k := newKit(t, "shop", quick())
	page := telemetry.Page(k)
	defer page.Close()
	require.NoError(t, do(t.Context(), k, read, nil))
	for _, b := range k.Breakers() {
		for range 3000 {
			b.ForceOpen("x")
			b.Reset()
		}
		b.ForceOpen("the last")
	}
	v := decode(t, page, "/")
	require.Len(t, v.Changes, 20)
	require.Equal(t, "forced_open", v.Changes[0].To)
	require.Len(t, v.Breakers[0].Changes, 8)
	require.Equal(t, "the last", v.Breakers[0].Note)
	require.Equal(t, 200, get(t, page, "/").Code)
}

// With ten thousand breakers the page shows those in trouble, and not much more
// is written than with a hundred.
func TestThePageOfTenThousandBreakersIsSmall(t *testing.T) {
	page, _ := crowd(t)
	v := decode(t, page, "/")
	require.Len(t, v.Breakers, 60)
	require.Equal(t, 10_000-60, v.Hidden)
	require.Equal(t, 10, v.States["open"])
	for _, b := range v.Breakers[:10] {
		require.Equal(t, "open", b.State)
	}
	require.Less(t, get(t, page, "/").Body.Len(), 400<<10)
	require.Len(t, decode(t, page, "/?q=host-00042").Breakers, 1)
	require.Len(t, decode(t, page, "/?n=0").Breakers, 10_000)
	allocs := testing.AllocsPerRun(3, func() { get(t, page, "/") })
	require.Less(t, allocs, 120_000.0)
}

// crowd is a kit of ten thousand breakers, ten of them open, and its page.
func crowd(t testing.TB) (*telemetry.Operations, *holdfast.Kit) {
	t.Helper()
	p := quick()
	p.Breaker = &breaker.Config{Window: breaker.Window{Span: 10 * time.Second}, Failures: 5}
	k := newKit(t, "shop", p)
	page := telemetry.Page(k)
	t.Cleanup(page.Close)
	for i := range 10_000 {
		require.NoError(t, do(context.Background(), k, call.Info{Target: hostName(i), Method: fmt.Sprint("m", i%20)}, nil))
	}
	for i := range 10 {
		open(t, k, call.Info{Target: hostName(i * 997), Method: "m1"})
	}
	return page, k
}
