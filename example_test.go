package holdfast_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/breaker"
	"github.com/holdfast-go/holdfast/bulkhead"
	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/fallback"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/retry"
	"github.com/holdfast-go/holdfast/timeout"
)

// The README takes its code from here, word for word.

// healthServer is a gRPC server that everybody knows.
func healthServer() (address string, stop func()) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), server.Stop
}

// answering is an HTTP server that answers with one status after the other, the
// last one for ever.
func answering(codes ...int) *httptest.Server {
	var n atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(codes[min(int(n.Add(1)), len(codes))-1])
		fmt.Fprintln(w, "answer", n.Load())
	}))
}

func Example_grpc() {
	address, stop := healthServer()
	defer stop()

	kit, err := holdfast.New(holdfast.Config{}) // the standard policy
	if err != nil {
		log.Fatal(err)
	}
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient(address, append(grpcmw.DialOptions(kit), creds)...)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()

	reply, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(reply.GetStatus(), err)
	// Output: SERVING <nil>
}

func Example_http() {
	server := answering(http.StatusServiceUnavailable, http.StatusOK)
	defer server.Close()

	kit, err := holdfast.New(holdfast.Config{}) // the standard policy
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)} // nil is http.DefaultTransport

	resp, err := client.Get(server.URL + "/items/lamp")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("%s: %s", resp.Status, body)
	// Output: 200 OK: answer 2
}

func ExampleStandard() {
	policy := holdfast.Standard()
	policy.Timeout.Attempt = 2 * time.Second                                       // one try may take so long
	policy.Breaker.Stall = breaker.Stall{After: 500 * time.Millisecond, Calls: 10} // ten unanswered for so long: it is silent
	kit, err := holdfast.New(holdfast.Config{Default: policy})
	if err != nil {
		log.Fatal(err)
	}
	silent := call.Info{Target: "db", Method: "query", Safety: call.ReadOnly}
	forNothing := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	ctx, cancel := context.WithCancel(context.Background())
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() { _, _ = holdfast.Do(ctx, kit, silent, forNothing) })
	}
	time.Sleep(time.Second) // longer than Stall.After, and shorter than an attempt
	_, err = holdfast.Do(ctx, kit, silent, forNothing)
	fmt.Println(errors.Is(err, breaker.ErrOpen))
	cancel()
	callers.Wait()
	// Output: true
}

func Example_safety() {
	kit, err := holdfast.New(holdfast.Config{
		Methods: map[string]holdfast.Policy{
			"/grpc.health.v1.Health/Check": {Safety: call.ReadOnly},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = grpcmw.DialOptions(kit)

	check, err := kit.Explain("/grpc.health.v1.Health/Check")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(check.Safety, "says", check.SafetyFrom)
	fmt.Printf("one attempt: %q\n", check.OneAttempt)
	// Output:
	// read_only says Methods["/grpc.health.v1.Health/Check"]
	// one attempt: ""
}

func ExampleKit_Explain() {
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	_ = grpcmw.DialOptions(kit)

	check, err := kit.Explain("/grpc.health.v1.Health/Check")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(check.OneAttempt)
	// Output:
	// nothing declares that /grpc.health.v1.Health/Check may be repeated: set Safety in its entry of Config.Methods
}

func Example_policies() {
	kit, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Timeout: &timeout.Limits{Total: 10 * time.Second, Attempt: 3 * time.Second},
			Breaker: &breaker.Config{
				Window:      breaker.Window{Span: 10 * time.Second},
				FailureRate: 0.5,                                                     // half of at least MinCalls results
				Stall:       breaker.Stall{After: 500 * time.Millisecond, Calls: 10}, // or ten attempts without an answer
				Cooldown:    2 * time.Second,
			},
			Bulkhead: &bulkhead.Config{Limit: 50, Queue: 50, MaxWait: 100 * time.Millisecond},
		},
		Methods: map[string]holdfast.Policy{
			"/items/":         {Timeout: &timeout.Limits{Total: 2 * time.Second, Attempt: 500 * time.Millisecond}},
			"GET /items/{id}": {Retry: &retry.Policy{MaxAttempts: 5}},
			"PUT /items/{id}": {Retry: retry.Off()},
			"POST /search":    {Safety: call.ReadOnly}, // HTTP says Unsafe; here we know better
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = httpmw.NewTransport(nil, kit)

	item, err := kit.Explain("GET /items/lamp")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("retry from", item.From.Retry)
	fmt.Println("timeout from", item.From.Timeout)
	fmt.Println("breaker from", item.From.Breaker)
	fmt.Println("fallback from", item.From.Fallback)
	// Output:
	// retry from Methods["GET /items/{id}"]
	// timeout from Methods["/items/"]
	// breaker from Default
	// fallback from Standard
}

func ExampleNew() {
	_, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Breaker: &breaker.Config{FailureRate: 50},
			Timeout: &timeout.Limits{Total: time.Second, Attempt: 2 * time.Second},
		},
	})
	fmt.Println(err)
	// Output:
	// holdfast: bad configuration
	//	Default.Breaker.FailureRate = 50: must be a share, 0 < r <= 1 (did you mean 0.5?)
	//	Default.Timeout.Attempt = 2s: must not exceed Total = 1s
}

func Example_timeouts() {
	kit, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{
			Timeout: &timeout.Limits{
				Total:   2 * time.Second,        // the whole call: all attempts and the waits between them
				Attempt: 500 * time.Millisecond, // one attempt
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	explanation, err := kit.Explain("anything")
	if err != nil {
		log.Fatal(err)
	}
	for _, wait := range explanation.Waits {
		fmt.Printf("%s: %s\n", wait.What, wait.Bound)
	}
	// Output:
	// the whole call, to the function's return: Timeout.Total 2s, from Default
	// one attempt, to the function's return: Timeout.Attempt 500ms, from Default
}

func ExampleWithOverride() {
	server := answering(http.StatusServiceUnavailable, http.StatusOK)
	defer server.Close()
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}

	ctx := holdfast.WithOverride(context.Background(), holdfast.Override{
		Retry:   retry.Off(),
		Timeout: &timeout.Limits{Total: 200 * time.Millisecond},
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 503 Service Unavailable
}

func Example_grpcOverride() {
	address, stop := healthServer()
	defer stop()
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient(address, append(grpcmw.DialOptions(kit), creds)...)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ctx, client := context.Background(), healthpb.NewHealthClient(conn)

	mayRepeat := grpcmw.WithOverride(holdfast.Override{Safety: call.ReadOnly})
	reply, err := client.Check(ctx, &healthpb.HealthCheckRequest{}, mayRepeat)
	fmt.Println(reply.GetStatus(), err)
	// Output: SERVING <nil>
}

func Example_errors() {
	kit, err := holdfast.New(holdfast.Config{
		Default: holdfast.Policy{Breaker: &breaker.Config{Consecutive: 2, Jitter: breaker.NoJitter}},
	})
	if err != nil {
		log.Fatal(err)
	}
	down := errors.New("connection refused")
	ask := func() error {
		_, err := holdfast.Do(context.Background(), kit, call.Info{Target: "db", Method: "count", Safety: call.ReadOnly},
			func(context.Context) (int, error) { return 0, down })
		return err
	}

	for range 2 {
		err := ask()
		var stopped *retry.StoppedError
		var open *breaker.OpenError
		switch {
		case errors.As(err, &stopped): // something was tried, and failed
			fmt.Printf("gave up after %d attempts: %v\n", stopped.Attempts, stopped.Last)
		case errors.As(err, &open): // nothing was sent
			fmt.Println("circuit open, try again in", open.RetryAfter().Round(time.Second))
		case errors.Is(err, bulkhead.ErrFull): // nothing was sent
			fmt.Println("too many calls in flight")
		case errors.Is(err, timeout.ErrExceeded): // the kit's limit, not the caller's
			fmt.Println("no answer in time")
		default: // the last failure itself: all attempts used, or not to be repeated
			fmt.Println("failed:", err)
		}
	}
	// Output:
	// gave up after 2 attempts: connection refused
	// circuit open, try again in 5s
}

func Example_stopped() {
	server := answering(http.StatusServiceUnavailable)
	defer server.Close()
	kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{Breaker: &breaker.Config{Consecutive: 2}}})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}

	resp, err := client.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	if stopped := httpmw.Stopped(resp); stopped != nil {
		fmt.Printf("%s, the last of %d answers\n", resp.Status, stopped.Attempts)
		fmt.Println("circuit open:", errors.Is(stopped, breaker.ErrOpen))
	}
	// Output:
	// 503 Service Unavailable, the last of 2 answers
	// circuit open: true
}

func ExampleDo() {
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	tries := 0
	query := func(context.Context) (int, error) {
		if tries++; tries < 2 {
			return 0, errors.New("connection reset")
		}
		return 42, nil
	}

	info := call.Info{Target: "orders-db", Method: "count", Safety: call.ReadOnly}
	count, err := holdfast.Do(ctx, kit, info, func(ctx context.Context) (int, error) {
		return query(ctx)
	})
	fmt.Println(count, err)
	// Output: 42 <nil>
}

func Example_classify() {
	kit, err := holdfast.New(holdfast.Config{Default: holdfast.Policy{
		Classify: func(_ context.Context, _ call.Info, res call.Result) call.Result {
			if errors.Is(res.Err, sql.ErrNoRows) {
				res.Class = call.ClientFault // an answer: neither repeated nor held against the database
			}
			return res
		},
	}})
	if err != nil {
		log.Fatal(err)
	}

	tries := 0
	info := call.Info{Target: "users-db", Method: "find", Safety: call.ReadOnly}
	_, err = holdfast.Do(context.Background(), kit, info, func(context.Context) (string, error) {
		tries++
		return "", sql.ErrNoRows
	})
	fmt.Println(tries, err)
	// Output: 1 sql: no rows in result set
}

func ExampleKit_Breakers() {
	kit, err := holdfast.New(holdfast.Config{})
	if err != nil {
		log.Fatal(err)
	}
	info := call.Info{Target: "orders-db", Method: "count"}
	count := func(context.Context) (int, error) { return 42, nil }
	_, _ = holdfast.Do(context.Background(), kit, info, count) // the first call makes the breaker

	for name, b := range kit.Breakers() {
		if name == "orders-db" {
			b.ForceOpen("migration until 14:00")
			fmt.Println(name, b.State())
		}
	}

	_, err = holdfast.Do(context.Background(), kit, info, count)
	fmt.Println(err)
	// Output:
	// orders-db forced_open
	// breaker: orders-db is forced open: migration until 14:00; the call was not sent; nothing was stored or pretended
}

func Example_fallback() {
	server := answering(http.StatusServiceUnavailable)
	defer server.Close()

	kit, err := holdfast.New(holdfast.Config{
		Methods: map[string]holdfast.Policy{
			"GET /banner": {
				Fallback: &fallback.Policy{Answer: func(context.Context, fallback.Failure) (any, error) {
					return &http.Response{StatusCode: http.StatusNoContent, Status: "204 No Content"}, nil
				}},
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: httpmw.NewTransport(nil, kit)}

	resp, err := client.Get(server.URL + "/banner")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 204 No Content
}
