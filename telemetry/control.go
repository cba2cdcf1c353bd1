package telemetry

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/breaker"
)

// What an operator may do to a breaker.
const (
	actionForceOpen = "force_open"
	actionRelease   = "release"
	actionDisable   = "disable"
	actionEnable    = "enable"
	actionReset     = "reset"
)

// maxForm bounds what an operator may send, in bytes, and maxReason its reason.
const (
	maxForm   = 16 << 10
	maxReason = 200
)

// Control lets those act whom authorize lets: force a breaker open and release it,
// disable and enable it, and reset it. It is asked for each request, and returns
// who asks, to be shown beside the reason, or an error, which is not shown. What a
// browser sends from another site has been refused before that, see
// [http.CrossOriginProtection]; but a client that is no browser can send what it
// likes, so authorize must not rely on where a request says that it comes from.
//
// Each action is logged with its operator and reason to slog.Default. Control
// returns p. It panics if authorize is nil, and must be called before p serves.
func (p *Operations) Control(authorize func(*http.Request) (operator string, err error)) *Operations {
	if authorize == nil {
		panic("telemetry: Control: authorize is nil")
	}
	p.authorize = authorize
	return p
}

// mayAct reports whether who asks may act.
func (p *Operations) mayAct(r *http.Request) bool {
	if p.authorize == nil {
		return false
	}
	_, err := p.authorize(r)
	return err == nil
}

// act does what an operator asks for, and leads back to the page.
func (p *Operations) act(w http.ResponseWriter, r *http.Request) {
	if p.authorize == nil {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "This page is read-only.", http.StatusMethodNotAllowed)
		return
	}
	if err := p.crossOrigin.Check(r); err != nil {
		http.Error(w, "A request from another site is refused.", http.StatusForbidden)
		return
	}
	operator, err := p.authorize(r)
	if err != nil {
		http.Error(w, "You may look, but not act.", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form cannot be read.", http.StatusBadRequest)
		return
	}
	if status, err := p.do(r, operator); err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	// Back to the page itself, which alone the browser knows the address of: a path
	// as it comes here may have lost a prefix, or name another host.
	w.Header().Set("Location", "?"+r.URL.RawQuery)
	w.WriteHeader(http.StatusSeeOther)
}

func (p *Operations) do(r *http.Request, operator string) (status int, err error) {
	b, err := p.find(r.PostForm.Get("kit"), r.PostForm.Get("breaker"))
	if err != nil {
		return http.StatusNotFound, err
	}
	action, reason := r.PostForm.Get("action"), strings.TrimSpace(r.PostForm.Get("reason"))
	if len(reason) > maxReason {
		return http.StatusBadRequest, fmt.Errorf("the reason is longer than %d bytes", maxReason)
	}
	switch action {
	case actionForceOpen:
		if reason == "" {
			return http.StatusBadRequest, fmt.Errorf("to force a breaker open a reason is needed, for those who find it so")
		}
		note := reason
		if operator != "" {
			note = operator + ": " + reason
		}
		b.ForceOpen(note)
	case actionRelease:
		b.Release()
	case actionDisable:
		b.Disable()
	case actionEnable:
		b.Enable()
	case actionReset:
		b.Reset()
	default:
		return http.StatusBadRequest, fmt.Errorf("there is no action %q", action)
	}
	slog.LogAttrs(r.Context(), slog.LevelInfo, "holdfast: an operator acts", slog.String("action", action),
		slog.String("breaker", redact(b.Name())), slog.String("operator", operator), slog.String("reason", reason))
	return http.StatusOK, nil
}

// find returns the breaker that a form names as the page has shown it.
func (p *Operations) find(kit, name string) (found *breaker.Breaker, err error) {
	i, err := strconv.Atoi(kit)
	if err != nil || i < 0 || i >= len(p.kits) {
		return nil, fmt.Errorf("there is no kit %q", kit)
	}
	for key, b := range p.kits[i].Breakers() {
		switch {
		case redact(key) != name:
		case found != nil:
			return nil, fmt.Errorf("there are several breakers %q", name)
		default:
			found = b
		}
	}
	if found == nil {
		return nil, fmt.Errorf("there is no breaker %q any more", name)
	}
	return found, nil
}
