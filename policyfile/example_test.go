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
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/policyfile"
)

// A client whose policies are in a file.
func ExampleLoadFile() {
	leave := folder("wire: http\nmethods:\n  GET /items/{id}:\n    retry: {max_attempts: 5}\n")
	defer leave()
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
	fmt.Println(attempts(kit))
	// Output: 5
}

// folder makes a folder with a file of policies the present one, until leave is called.
func folder(policies string) (leave func()) {
	before, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "policyfile")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.Chdir(dir); err != nil {
		log.Fatal(err)
	}
	save(policies)
	return func() {
		_ = os.Chdir(before)
		_ = os.RemoveAll(dir)
	}
}

func save(policies string) {
	if err := os.WriteFile("policies.yaml", []byte(policies), 0o600); err != nil {
		log.Fatal(err)
	}
}

// attempts returns how many the policy of an item gives a call.
func attempts(kit *holdfast.Kit) int {
	item, err := kit.Explain("GET /items/lamp")
	if err != nil {
		log.Fatal(err)
	}
	return item.Policy.Retry.MaxAttempts
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
	leave := folder("wire: http\nmethods:\n  GET /items/{id}:\n    retry: {max_attempts: 5}\n")
	defer leave()
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
	_ = httpmw.NewTransport(nil, kit)
	fmt.Println(attempts(kit))

	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go policyfile.Watch(context.Background(), kit, source, hangups, func(err error) {
		if err != nil {
			log.Printf("the policies stay as they are: %v", err)
		}
	})

	// Somebody changes the file and sends the signal.
	save("wire: http\nmethods:\n  GET /items/{id}:\n    retry: {max_attempts: 2}\n")
	hangups <- syscall.SIGHUP
	for attempts(kit) == 5 {
		time.Sleep(time.Millisecond) // Watch is on a goroutine of its own
	}
	fmt.Println(attempts(kit))
	signal.Stop(hangups)
	close(hangups) // which ends Watch
	// Output:
	// 5
	// 2
}

func classify(_ context.Context, _ call.Info, res call.Result) call.Result { return res }
