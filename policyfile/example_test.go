package policyfile_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/policyfile"
)

// A client whose policies are in a file.
func ExampleLoadFile() {
	file, err := policyfile.LoadFile("policies.yaml")
	if err != nil {
		log.Fatal(err)
	}
	kit, err := holdfast.New(file.Config)
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}
	_ = client
}

// All that is wrong is told at once, with its place.
func ExampleLoad() {
	_, err := policyfile.Load(strings.NewReader(`wire: http
default:
  timeout: {total: 30, attempt: 2s}
  breaker: {failure_rate: 50}
methods:
  get /items/{id}: {retry: no}
`))
	fmt.Println(err)
	// Output:
	// policyfile: bad policies
	// 	3:20: default.timeout.total = 30: is a number without a unit; write 30s or 30ms
	// 	4:27: default.breaker.failure_rate = 50: must be a share, 0 < r <= 1 (did you mean 0.5?)
	// 	6:3: methods["get /items/{id}"]: the method "get" is never sent: write GET
	// 	6:28: methods["get /items/{id}"].retry = "no": is a text; it must be a group of fields, or off
}

// The file is read again at each SIGHUP. What a file cannot hold is set each time.
func ExampleWatch() {
	source := policyfile.Source{Path: "policies.yaml", Amend: func(f *policyfile.File) error {
		f.Default.Classify = classify
		return nil
	}}
	file, err := source.Load()
	if err != nil {
		log.Fatal(err)
	}
	kit, err := holdfast.New(file.Config)
	if err != nil {
		log.Fatal(err)
	}

	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go policyfile.Watch(context.Background(), kit, source, hangups, func(err error) {
		if err != nil {
			log.Printf("the policies stay as they are: %v", err)
		}
	})
}

func classify(_ context.Context, _ call.Info, res call.Result) call.Result { return res }
