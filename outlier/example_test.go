package outlier_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/outlier"
)

// Of three instances behind one name the second answers each call with a 503. Once it
// has failed three times it is left out.
func ExampleConfig() {
	var instances []string
	for _, status := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusOK} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		defer server.Close()
		instances = append(instances, server.URL)
	}
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	transport, err := httpmw.Failover(nil, kit, []httpmw.Upstream{{
		Name:      "catalog",
		Instances: instances,
		Outlier: outlier.Config{
			MinCalls: 3, Time: time.Minute,
			Ejected: func(name string, _ time.Duration) { fmt.Println("ejected, the bad one:", name == instances[1]) },
		},
	}}, httpmw.WithFront("http://catalog"))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	failed := 0
	for range 100 {
		resp, err := client.Post("http://catalog/", "text/plain", nil) // a POST gets one attempt
		if err != nil {
			log.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK {
			failed++
		}
		resp.Body.Close()
	}
	fmt.Println(failed, "of 100 failed")
	// Output:
	// ejected, the bad one: true
	// 3 of 100 failed
}
