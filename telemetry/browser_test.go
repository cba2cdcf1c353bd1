package telemetry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/telemetry"
)

// browser starts headless Chromium. Where there is none, or the machine is too busy
// for one, the test is skipped, but not if HOLDFAST_REQUIRE_CHROMIUM is set.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	required := os.Getenv("HOLDFAST_REQUIRE_CHROMIUM") != ""
	if path == "" {
		if required {
			t.Fatal("HOLDFAST_REQUIRE_CHROMIUM is set, and there is no Chromium; apt-get install --no-install-recommends chromium")
		}
		t.Skip("no Chromium: apt-get install --no-install-recommends chromium")
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	began := time.Now()
	require.NoError(t, chromedp.Do(ctx)) // without a limit: that would be the browser's
	_, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	if took := time.Since(began); took > 4*time.Second && !required {
		t.Skipf("the machine is too busy for a browser: it took %v to show an empty page", took)
	}
	limited, done := context.WithTimeout(ctx, 6*time.Minute) // for a machine that has much else to do
	t.Cleanup(done)
	return limited
}

// serve serves a page until the end of the test. It is closed first, or the server
// would wait for the browser.
func serve(t *testing.T, page *telemetry.Operations) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(page)
	t.Cleanup(server.Close)
	t.Cleanup(page.Close)
	return server
}

// poll waits until an expression is true in the document of that moment, which may
// be another from one moment to the next.
func poll(t *testing.T, ctx context.Context, expression string) {
	t.Helper()
	require.Eventually(t, func() bool {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`Boolean(`+expression+`)`))
		return err == nil && is
	}, time.Minute, 20*time.Millisecond, expression)
}

// text and press go by what the page has at that moment: a node found before may
// have been replaced since, for the page is live.
func text(t *testing.T, ctx context.Context, selector string) string {
	t.Helper()
	found, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("`+selector+`").textContent`))
	require.NoError(t, err, selector)
	return found
}

func press(t *testing.T, ctx context.Context, selector string) {
	t.Helper()
	poll(t, ctx, `(() => { const at = document.querySelector("`+selector+`"); at?.click(); return at !== null })()`)
}

// calm is the reader who wants no motion: a picture that moves keeps a browser
// without a graphics card busy.
func calm(t *testing.T, ctx context.Context, scheme string) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	require.NoError(t, err)
}

// One browser serves all of them: to start it is what takes time.
func TestThePageInChromium(t *testing.T) {
	ctx := browser(t)
	calm(t, ctx, "light")
	for _, part := range []struct {
		name string
		test func(*testing.T, context.Context)
	}{
		{"it shows an opening live", showsAnOpeningLive},
		{"an operator isolates a breaker", anOperatorIsolates},
		{"a cross-site post is refused", aCrossSitePostIsRefused},
		{"in every shape", inEveryShape},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, ctx) })
	}
}

// The page shows an opening when it happens, without being loaded again; what the
// reader has opened and what an operator types is left as it is.
func showsAnOpeningLive(t *testing.T, ctx context.Context) {
	p := quick()
	p.Breaker.Cooldown = time.Hour
	k := newKit(t, "shop", p)
	require.NoError(t, do(t.Context(), k, read, nil))
	page := telemetry.Page(k).Control(func(*http.Request) (string, error) { return "ana", nil })
	server := serve(t, page)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(server.URL)))
	require.Equal(t, "The breaker is closed.", text(t, ctx, "h1"))
	poll(t, ctx, `document.body.className === "connected"`)
	press(t, ctx, `details.policy summary`)
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`window.sameDocument = true`))
	require.NoError(t, err)

	open(t, k, read)
	poll(t, ctx, `document.querySelector("h1").textContent === "The breaker is not closed."`)
	poll(t, ctx, `document.querySelector("article.open .badge")?.textContent === "open"`)
	poll(t, ctx, `document.title === "(1) holdfast"`)
	poll(t, ctx, `window.sameDocument && document.querySelector("details.policy").open`)

	require.NoError(t, chromedp.Do(ctx, chromedp.SendKeys(`article input[name=reason]`, "half a rea")))
	for _, b := range k.Breakers() {
		b.Reset()
	}
	poll(t, ctx, `document.querySelector("h1").textContent === "The breaker is closed."`)
	for range 5 {
		require.Error(t, do(t.Context(), k, read, errDown))
	}
	poll(t, ctx, `document.querySelector("h1").textContent === "The breaker is not closed."`)
}

// An operator isolates a breaker, and lets it go again.
func anOperatorIsolates(t *testing.T, ctx context.Context) {
	k := newKit(t, "shop", quick())
	require.NoError(t, do(t.Context(), k, read, nil))
	page := telemetry.Page(k).Control(func(*http.Request) (string, error) { return "ana", nil })
	server := serve(t, page)
	require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(server.URL)))
	poll(t, ctx, `document.body.className === "connected"`)
	press(t, ctx, `li.row details.do summary`)
	// What is typed is not lost while the page goes on to be live.
	require.NoError(t, chromedp.Do(ctx, chromedp.SendKeys(`li.row input[name=reason]`, "database <moves>")))
	press(t, ctx, `li.row button.force_open`)
	poll(t, ctx, `document.querySelector("article.forced_open .note") !== null`)
	require.Equal(t, "“ana: database <moves>”", text(t, ctx, "article .note"))
	require.ErrorIs(t, do(t.Context(), k, read, nil), breaker.ErrOpen)
	press(t, ctx, `article button.reset`)
	poll(t, ctx, `document.querySelector("article.forced_open") === null && document.body.className === "connected"`)
	require.NoError(t, do(t.Context(), k, read, nil))
}

// A form on another site, or on another port of this one, does not reach a breaker.
func aCrossSitePostIsRefused(t *testing.T, ctx context.Context) {
	k := newKit(t, "shop", quick())
	require.NoError(t, do(t.Context(), k, read, nil))
	var asked atomic.Int32 // whether a post may be
	page := telemetry.Page(k).Control(func(r *http.Request) (string, error) {
		if r.Method == http.MethodPost {
			asked.Add(1)
		}
		return "ana", nil
	})
	server := serve(t, page)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<form method="post" action="` + server.URL + `"><input name="kit" value="0"><input name="breaker" value="db">` +
			`<input name="reason" value="mischief"><button name="action" value="force_open">win</button></form>`))
	}))
	defer evil.Close()
	port, err := url.Parse(evil.URL)
	require.NoError(t, err)
	for _, from := range []string{evil.URL, "http://localhost:" + port.Port()} { // same-site, and cross-site
		require.NoError(t, chromedp.Do(ctx, chromedp.Navigate(from), chromedp.Click("button")))
		poll(t, ctx, `document.body.textContent.includes("from another site is refused")`)
	}
	require.Zero(t, asked.Load(), "nobody is asked who is not from here")
	require.NoError(t, do(t.Context(), k, read, nil))
}

// What the browser has to say against the page: nothing, in any shape of it.
func inEveryShape(t *testing.T, ctx context.Context) {
	s := newStage(t)
	s.page.Control(func(r *http.Request) (string, error) {
		if r.URL.Query().Has("operator") {
			return "ana", nil
		}
		return "", errors.New("reader")
	})
	server := serve(t, s.page)
	console := chromedp.Console(ctx)
	for _, shape := range []struct {
		name, query, scheme string
		width, height       int64
	}{
		{"light", "", "light", 1240, 900},
		{"dark", "", "dark", 1240, 900},
		{"narrow", "", "light", 360, 740},
		{"narrow-dark", "?operator", "dark", 360, 740},
		{"operator", "?operator", "light", 1240, 900},
	} {
		calm(t, ctx, shape.scheme)
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(shape.width, shape.height), chromedp.Navigate(server.URL+"/"+shape.query)))
		poll(t, ctx, `document.body.className === "connected"`)
		fits, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth <= innerWidth`))
		require.NoError(t, err)
		require.True(t, fits, "%s: it scrolls sideways", shape.name)
		forms, err := chromedp.Run(ctx, chromedp.Evaluate[int](`document.querySelectorAll("form.act").length`))
		require.NoError(t, err)
		require.Equal(t, strings.Contains(shape.query, "operator"), forms > 0)
	}
	const end = "that is all"
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`console.log("`+end+`") === undefined`))
	require.NoError(t, err)
	for message, err := range console {
		require.NoError(t, err)
		if message.Text == end {
			break
		}
		t.Fatal("the console says: ", message.Text)
	}
}

// TestPictures takes the page's pictures, if HOLDFAST_SCREENSHOTS names a folder for
// them: of one moment, however long the browser takes.
func TestPictures(t *testing.T) {
	dir := os.Getenv("HOLDFAST_SCREENSHOTS")
	if dir == "" {
		t.Skip("HOLDFAST_SCREENSHOTS names no folder")
	}
	s := newStage(t)
	time.Sleep(4 * time.Second) // of the outage, so that there is something to see
	moment := get(t, s.page, "/")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("asset") == "page.js":
		case r.URL.Query().Has("asset"):
			s.page.ServeHTTP(w, r)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(moment.Body.Bytes())
		}
	}))
	t.Cleanup(server.Close)
	ctx := browser(t)
	for _, picture := range []struct {
		name, scheme  string
		width, height int64
	}{{"operations", "light", 1240, 900}, {"operations-dark", "dark", 1240, 900}, {"operations-narrow", "light", 360, 740}} {
		calm(t, ctx, picture.scheme)
		require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(picture.width, picture.height), chromedp.Navigate(server.URL)))
		shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, picture.name+".png"), shot, 0o644))
	}
}
