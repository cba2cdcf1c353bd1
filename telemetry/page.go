package telemetry

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"html/template"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
)

// Operations is the page for whoever is on call: an http.Handler, as net/http/pprof
// has them, for any path of an internal address. It shows every breaker with its
// state, since when, why, and what it costs; the others' layers; the policies in
// force and where each layer comes from; and what happened last.
//
// It is HTML, or JSON for a client that prefers it. It works without JavaScript, and
// with it keeps itself up to date. It loads nothing from elsewhere. It shows the
// names of dependencies, routes and policies, and no secrets; it is not for the
// public. Unless [Operations.Control] says otherwise it changes nothing.
//
// The query may have q, a part of a breaker's or kit's name; and n, how many
// breakers are shown, 0 for all, those in trouble first. Without it n is 60.
type Operations struct {
	kits        []*holdfast.Kit
	history     history
	since       time.Time
	authorize   func(*http.Request) (string, error)
	crossOrigin *http.CrossOriginProtection
	detach      []func()
	closed      chan struct{}
	closing     sync.Once
	readers     atomic.Int64 // that are shown changes live
}

// Page returns the page of kits. It begins to remember what their breakers do and
// to count their calls, so make it when the program starts. It panics if a kit is
// nil.
func Page(kits ...*holdfast.Kit) *Operations {
	p := &Operations{kits: slices.Clone(kits), since: time.Now(), crossOrigin: http.NewCrossOriginProtection(), closed: make(chan struct{})}
	for i, k := range p.kits {
		k.Count()
		p.detach = append(p.detach, k.Attach(holdfast.Hooks{Transition: func(t breaker.Transition) { p.history.add(i, t) }}))
	}
	return p
}

// Close ends what keeps readers up to date, so that a server that shuts down need
// not wait for them (http.Server.RegisterOnShutdown), and lets the page remember
// nothing any more.
func (p *Operations) Close() {
	p.closing.Do(func() {
		close(p.closed)
		for _, detach := range p.detach {
			detach()
		}
	})
}

// shown is how many breakers are shown if nothing else is asked for.
const shown = 60

//go:embed assets
var assets embed.FS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"words": words,
	"count": func(n any) string {
		if small, ok := n.(int); ok {
			return count(uint64(small))
		}
		return count(n.(uint64))
	},
	"several": func(n any, noun string) string {
		if small, ok := n.(int); ok {
			return several(small, noun)
		}
		return several(n.(uint64), noun)
	},
	"pair": func(b breakerView, v *view) cardView { return cardView{b, v} },
}).ParseFS(assets, "assets/page.html"))

// cardView is a breaker with what is around it.
type cardView struct {
	B breakerView
	V *view
}

// ServeHTTP serves the page, what belongs to it, and with [Operations.Control]
// what operators do.
func (p *Operations) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	query := r.URL.Query()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		p.act(w, r)
		return
	default:
		h.Set("Allow", "GET, HEAD, POST")
		http.Error(w, "GET or POST", http.StatusMethodNotAllowed)
		return
	}
	limit, err := strconv.Atoi(cmp.Or(query.Get("n"), strconv.Itoa(shown)))
	if err != nil || limit < 0 {
		http.Error(w, "n is how many breakers are shown, 0 for all", http.StatusBadRequest)
		return
	}
	if limit == 0 {
		limit = 1 << 30
	}
	look := func() *view {
		v := p.look(strings.ToLower(query.Get("q")), limit)
		v.Control = p.mayAct(r)
		return v
	}
	switch {
	case query.Has("asset"):
		serveAsset(w, r, query.Get("asset"))
	case query.Has("live"):
		p.live(w, r, look)
	case acceptsJSON(r.Header.Values("Accept")):
		h.Set("Vary", "Accept")
		h.Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		out.SetIndent("", " ")
		_ = out.Encode(look())
	default:
		h.Set("Vary", "Accept")
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(render("page.html", look()))
	}
}

// render fills in a template. What can go wrong there the tests have seen.
func render(name string, v *view) []byte {
	var b bytes.Buffer
	if err := page.ExecuteTemplate(&b, name, v); err != nil {
		return []byte("telemetry: " + template.HTMLEscapeString(err.Error()))
	}
	return b.Bytes()
}

func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil || strings.Contains(name, "/") || strings.HasSuffix(name, ".html") {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(name[strings.LastIndexByte(name, '.'):]))
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(content)
}

// live sends what the page shows, and again whenever that has changed, as server-sent
// events, until the client is gone.
func (p *Operations) live(w http.ResponseWriter, r *http.Request, look func() *view) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", eventStream)
		return
	}
	if p.readers.Add(1) > maxReaders {
		p.readers.Add(-1)
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer p.readers.Add(-1)
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", eventStream)
	wake, stop := p.history.wake()
	defer stop()
	tick := time.NewTicker(liveTick)
	defer tick.Stop()
	var last []byte
	for {
		now := render("live", look())
		if !bytes.Equal(now, last) {
			last = now
			// A server's limit for a whole answer is not for this one, and a reader
			// who takes nothing any more is not waited for.
			_ = control.SetWriteDeadline(time.Now().Add(writeLimit))
			if _, err := w.Write(asEvent(now)); err != nil {
				return
			}
			if control.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-p.closed:
			return
		case <-tick.C:
			continue
		case <-wake:
		}
		// Transitions may come in droves.
		pause := time.NewTimer(livePause)
		select {
		case <-r.Context().Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

const eventStream = "text/event-stream"

const (
	liveTick  = time.Second
	livePause = 100 * time.Millisecond

	// What a reader may cost: how long one write may take, and how many may be
	// shown changes live at once.
	writeLimit = 10 * time.Second
	maxReaders = 100
)

// asEvent makes a server-sent event of a text.
func asEvent(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// acceptsJSON reports whether a client would rather have JSON than HTML. One that
// takes anything gets HTML.
func acceptsJSON(accept []string) bool {
	quality := func(kind string) (q float64) {
		for _, item := range strings.Split(strings.Join(accept, ","), ",") {
			media, params, err := mime.ParseMediaType(item)
			if err != nil || media != kind {
				continue
			}
			q = 1
			if weight, err := strconv.ParseFloat(params["q"], 64); err == nil {
				q = weight
			}
		}
		return q
	}
	asked := quality("application/json")
	return asked > 0 && asked > max(quality("text/html"), quality("application/xhtml+xml"))
}
