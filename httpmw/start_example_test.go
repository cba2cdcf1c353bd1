package httpmw_test

import (
	"log"
	"net/http"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpmw"
)

// The least that a program does; the README shows it whole.
func Example_start() {
	kit, err := holdfast.New(holdfast.Config{}) // the standard policy
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)} // nil is http.DefaultTransport
	client.CloseIdleConnections()
	// Output:
}
