package httpmw_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
)

// A read is repeated, a POST is not, unless it carries a key by which the server
// knows it again. A repeat tells how many attempts came before it, if asked to.
func ExampleNewTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before := cmp.Or(r.Header.Get("X-Previous-Attempts"), "0")
		fmt.Println(r.Method, "after", before, "others")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit, httpmw.WithAttemptNumberHeader("X-Previous-Attempts"))}

	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := http.NewRequest(method, server.URL, strings.NewReader(""))
		if err != nil {
			panic(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			panic(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// GET after 0 others
	// GET after 1 others
	// GET after 2 others
	// 503 Service Unavailable
	// POST after 0 others
	// 503 Service Unavailable
}
