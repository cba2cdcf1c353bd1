package httpmw_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
)

// H1: redirects and cookies are the client's business, and reach it as over the
// bare transport.
func TestH1_RedirectsAndCookiesAreThoseOfTheBareTransport(t *testing.T) {
	hop := func(n *notes, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		n.served("%s %s %d %q %v %q %q", r.Method, r.URL.Path, r.ContentLength, body, err, r.Header["Authorization"], r.Header["Cookie"])
		var code int
		if k, _ := fmt.Sscanf(r.URL.Path, "/%d", &code); k == 1 {
			http.SetCookie(w, &http.Cookie{Name: "hop", Value: fmt.Sprint(code), Path: "/"})
			http.Redirect(w, r, "/end", code)
			return
		}
		_, _ = io.WriteString(w, "the end")
	}
	each := func(body func() io.Reader) func(*testing.T, *notes, *http.Client, string) {
		return func(t *testing.T, n *notes, c *http.Client, url string) {
			for _, code := range []int{301, 302, 303, 307, 308} {
				for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
					req := newRequest(t, method, fmt.Sprintf("%s/%d", url, code), body())
					req.Header.Set("Authorization", "Bearer x")
					resp, err := c.Do(req)
					if err == nil {
						n.saw("%s %d at %s", method, code, resp.Request.URL.Path)
					}
					n.answer(resp, err)
				}
			}
		}
	}
	loop := func(n *notes, w http.ResponseWriter, r *http.Request) {
		n.served("%s", r.URL.Path)
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	}
	playEach(t, map[string]situation{
		"without body":           {serve: hop, play: each(func() io.Reader { return nil }), real: true},
		"a body in memory":       {serve: hop, play: each(func() io.Reader { return strings.NewReader("body") }), real: true},
		"a body that is read on": {serve: hop, play: each(func() io.Reader { return io.MultiReader(strings.NewReader("body")) }), real: true},
		"a loop": {
			serve: loop,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				_, err := c.Do(newRequest(t, http.MethodGet, url+"/", nil))
				n.saw("%v", err)
			},
		},
		"a check that says no": {
			serve: loop,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for _, no := range []error{http.ErrUseLastResponse, errors.New("no further")} {
					c.CheckRedirect = func(*http.Request, []*http.Request) error { return no }
					resp, err := c.Do(newRequest(t, http.MethodGet, url+"/", nil))
					n.saw("%t %v", resp != nil, err)
					if err == nil {
						n.answer(resp, err)
					}
				}
			},
		},
		"a redirect to nowhere": {
			serve: func(_ *notes, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "://")
				w.WriteHeader(http.StatusFound)
			},
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				_, err := c.Do(newRequest(t, http.MethodGet, url, nil))
				n.saw("%v", err)
			},
		},
		"cookies": {
			serve: hop,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				c.Jar, _ = cookiejar.New(nil)
				for _, path := range []string{"/", "/302", "/", "/307", "/"} {
					n.answer(c.Do(newRequest(t, http.MethodGet, url+path, nil)))
				}
			},
			real: true,
		},
		"a cookie of the request": {
			serve: hop,
			play: func(t *testing.T, n *notes, c *http.Client, url string) {
				for range 2 {
					req := newRequest(t, http.MethodPost, url+"/308", strings.NewReader("x"))
					req.AddCookie(&http.Cookie{Name: "own", Value: "1"})
					n.answer(c.Do(req))
					n.saw("%q", req.Header["Cookie"])
				}
			},
		},
	})
}
