package httpmw

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/internal/wire/httpwire"
)

// find returns the policy of a request in a table, and the name it goes by: the
// pattern that matches, or the HTTP method alone, or otherMethod. It is never the
// raw path, so that the names stay few and hold no secret.
func find(table *holdfast.Table, req *http.Request) (*holdfast.Method, string) {
	if key := table.Routes().(*routes).match(req); key != "" {
		return table.Method(key), key
	}
	return table.Default(), nameOf(methodOf(req))
}

// otherMethod is the name of requests that match no pattern and whose method is none
// of RFC 9110 or 5789: the methods of a proxy's clients may be any number of words.
const otherMethod = "OTHER"

// nameOf returns the name that requests with a method go by.
func nameOf(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return otherMethod
}

func methodOf(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// protocol is how HTTP names methods, and how requests find them.
var protocol = func() wire.Protocol {
	p := httpwire.Protocol()
	p.Find = findByName
	p.Routes = func(keys []string) any { return newRoutes(keys) }
	p.Waits = wire.Waits{
		Attempt:      "to the response headers",
		FirstMessage: "the first byte of the body",
		Lengths:      true,
		Rest:         "each read of the body",
	}
	return p
}()

// findByName reads "GET /items/7" or "GET https://host/items/7" for Kit.Explain.
// Neither a user nor a query comes back in the name.
func findByName(name string, _ func(key string) bool, table any) (full, key string, declared call.Safety, ok bool) {
	method, address, found := strings.Cut(name, " ")
	if !found {
		method, address = http.MethodGet, name
	}
	address = strings.TrimSpace(address)
	if !isToken(method) || !strings.HasPrefix(address, "/") && !strings.Contains(address, "://") {
		return "", "", call.SafetyUnknown, false
	}
	u, err := url.Parse(address)
	if err != nil {
		return method, "", httpwire.Safety(method), true // no request can have such a URL
	}
	if u.Path == "" {
		u.Path = "/"
	}
	key = table.(*routes).match(&http.Request{Method: method, URL: u})
	return method + " " + u.Host + u.Path, key, httpwire.Safety(method), true
}
