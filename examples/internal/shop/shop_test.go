package shop_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/holdfast-go/holdfast/examples/internal/shop"
	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
)

// These tests use real sockets, so that the examples stand on proved ground.

func startGRPC(t *testing.T) (*shop.GRPC, *shop.Catalog, shopv1.CatalogClient) {
	t.Helper()
	catalog := shop.NewCatalog()
	s := shop.NewGRPC(catalog)
	addr, stop, err := s.Start("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(stop)
	cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = cc.Close() })
	return s, catalog, shopv1.NewCatalogClient(cc)
}

// startHTTP returns the server, its base URL and a client of the protocol.
func startHTTP(t *testing.T, h2c bool) (*shop.HTTP, string, *http.Client) {
	t.Helper()
	s := shop.NewHTTP(shop.NewCatalog())
	addr, stop, err := s.Start("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(stop)
	var protocols http.Protocols
	protocols.SetHTTP1(!h2c)
	protocols.SetUnencryptedHTTP2(h2c)
	tr := &http.Transport{Protocols: &protocols}
	t.Cleanup(tr.CloseIdleConnections)
	return s, "http://" + addr, &http.Client{Transport: tr}
}

func everyProtocol(t *testing.T, test func(t *testing.T, s *shop.HTTP, url string, c *http.Client)) {
	for name, h2c := range map[string]bool{"http1": false, "h2c": true} {
		t.Run(name, func(t *testing.T) {
			s, url, c := startHTTP(t, h2c)
			test(t, s, url, c)
		})
	}
}

// do returns the status and the body without the random blanks of protojson.
func do(t *testing.T, ctx context.Context, c *http.Client, method, url, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, strings.ReplaceAll(string(got), `, "`, `,"`), nil
}

func TestTheProtoDeclaresWhatARepeatMayDo(t *testing.T) {
	methods := shopv1.File_shop_shopv1_shop_proto.Services().ByName("Catalog").Methods()
	for name, want := range map[protoreflect.Name]descriptorpb.MethodOptions_IdempotencyLevel{
		"GetItem":     descriptorpb.MethodOptions_NO_SIDE_EFFECTS,
		"WatchPrices": descriptorpb.MethodOptions_NO_SIDE_EFFECTS,
		"RenameItem":  descriptorpb.MethodOptions_IDEMPOTENT,
		"PlaceOrder":  descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN,
	} {
		options := methods.ByName(name).Options().(*descriptorpb.MethodOptions)
		require.Equal(t, want, options.GetIdempotencyLevel(), name)
	}
}

func TestGRPC(t *testing.T) {
	s, catalog, c := startGRPC(t)
	ctx := t.Context()

	it, err := c.GetItem(ctx, &shopv1.GetItemRequest{Id: "rope"})
	require.NoError(t, err)
	require.Equal(t, "Rope, 30 m", it.GetName())

	it, err = c.RenameItem(ctx, &shopv1.RenameItemRequest{Id: "rope", Name: "Rope"})
	require.NoError(t, err)
	require.Equal(t, "Rope", it.GetName())

	order, err := c.PlaceOrder(ctx, &shopv1.PlaceOrderRequest{ItemId: "rope", Quantity: 3})
	require.NoError(t, err)
	require.Equal(t, int32(12_600), order.GetCents())
	require.Equal(t, 1, catalog.Orders())

	stream, err := c.WatchPrices(ctx, &shopv1.WatchPricesRequest{ItemId: "lamp", Count: 3, EveryMs: 1})
	require.NoError(t, err)
	for n := range int32(3) {
		price, err := stream.Recv()
		require.NoError(t, err)
		require.Equal(t, 2_950+n, price.GetCents())
	}
	_, err = stream.Recv()
	require.Equal(t, io.EOF, err)

	require.Equal(t, 4, s.Hits())
	require.Equal(t, 1, s.HitsByMethod()["/shop.v1.Catalog/WatchPrices"])
}

func TestGRPCErrors(t *testing.T) {
	_, catalog, c := startGRPC(t)
	ctx := t.Context()
	for name, step := range map[string]struct {
		call func() error
		want codes.Code
	}{
		"no such item": {func() error {
			_, err := c.GetItem(ctx, &shopv1.GetItemRequest{Id: "moon"})
			return err
		}, codes.NotFound},
		"rename what is not there": {func() error {
			_, err := c.RenameItem(ctx, &shopv1.RenameItemRequest{Id: "moon", Name: "Moon"})
			return err
		}, codes.NotFound},
		"no name": {func() error {
			_, err := c.RenameItem(ctx, &shopv1.RenameItemRequest{Id: "rope"})
			return err
		}, codes.InvalidArgument},
		"order of nothing": {func() error {
			_, err := c.PlaceOrder(ctx, &shopv1.PlaceOrderRequest{ItemId: "rope"})
			return err
		}, codes.InvalidArgument},
		"watch what is not there": {func() error {
			stream, err := c.WatchPrices(ctx, &shopv1.WatchPricesRequest{ItemId: "moon"})
			require.NoError(t, err)
			_, err = stream.Recv()
			return err
		}, codes.NotFound},
		"negative count": {func() error {
			stream, err := c.WatchPrices(ctx, &shopv1.WatchPricesRequest{ItemId: "rope", Count: -1})
			require.NoError(t, err)
			_, err = stream.Recv()
			return err
		}, codes.InvalidArgument},
	} {
		require.Equal(t, step.want, status.Code(step.call()), name)
	}
	require.Zero(t, catalog.Orders())
}

func TestASilentGRPCServer(t *testing.T) {
	s, _, c := startGRPC(t)
	stream, err := c.WatchPrices(t.Context(), &shopv1.WatchPricesRequest{ItemId: "lamp", EveryMs: 1})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)

	s.Silence(true)
	s.Silence(true)
	require.Eventually(t, func() bool { return s.Waiting() == 1 }, 10*time.Second, time.Millisecond, "the stream")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.GetItem(ctx, &shopv1.GetItemRequest{Id: "rope"})
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.Equal(t, 2, s.Hits())

	held := make(chan error, 1)
	go func() {
		_, err := c.PlaceOrder(t.Context(), &shopv1.PlaceOrderRequest{ItemId: "rope", Quantity: 1})
		held <- err
	}()
	require.Eventually(t, func() bool { return s.Hits() == 3 }, 10*time.Second, time.Millisecond)
	s.Silence(false)
	s.Silence(false)
	require.NoError(t, <-held)
	_, err = stream.Recv()
	require.NoError(t, err)
}

func TestHTTP(t *testing.T) {
	everyProtocol(t, func(t *testing.T, s *shop.HTTP, url string, c *http.Client) {
		for _, step := range []struct {
			method, path, body string
			status             int
			want               string
		}{
			{"GET", "/items/rope", "", 200, `{"id":"rope","name":"Rope, 30 m","cents":4200}`},
			{"HEAD", "/items/rope", "", 200, ``},
			{"PUT", "/items/rope", `{"name":"Rope"}`, 200, `{"id":"rope","name":"Rope","cents":4200}`},
			{"POST", "/orders", `{"item_id":"rope","quantity":2}`, 201, `{"id":"1","item_id":"rope","quantity":2,"cents":8400}`},
			{"GET", "/items/moon", "", 404, "no item \"moon\"\n"},
			{"PUT", "/items/rope", `{}`, 400, "an item needs a name\n"},
			{"POST", "/orders", `{"item_id":"rope","quantity":-2}`, 400, "quantity -2: want 1 to 1000\n"},
			{"POST", "/orders", strings.Repeat(" ", 1<<20), 400, "http: request body too large\n"},
		} {
			code, got, err := do(t, t.Context(), c, step.method, url+step.path, step.body)
			require.NoError(t, err)
			require.Equal(t, step.want, got, "%s %s", step.method, step.path)
			require.Equal(t, step.status, code, "%s %s", step.method, step.path)
		}
		code, _, err := do(t, t.Context(), c, "PUT", url+"/items/rope", "no JSON")
		require.NoError(t, err)
		require.Equal(t, 400, code)
		code, _, err = do(t, t.Context(), c, "DELETE", url+"/items/rope", "")
		require.NoError(t, err)
		require.Equal(t, 405, code)
		require.Equal(t, 9, s.Hits())
		require.Equal(t, 3, s.HitsByMethod()[shop.GetItem])
	})
}

// The handlers must be seen to leave when their clients have: a server's stop
// would hide it.
func TestASilentHTTPServer(t *testing.T) {
	everyProtocol(t, func(t *testing.T, s *shop.HTTP, url string, c *http.Client) {
		s.Silence(true)
		for _, method := range []string{"GET", "PUT"} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, _, err := do(t, ctx, c, method, url+"/items/rope", `{"name":"late"}`)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		require.Equal(t, 2, s.Hits())
		require.Eventually(t, func() bool { return s.Waiting() == 0 }, 10*time.Second, time.Millisecond)

		held := make(chan string, 1)
		go func() {
			_, got, _ := do(t, t.Context(), c, "GET", url+"/items/rope", "")
			held <- got
		}()
		require.Eventually(t, func() bool { return s.Hits() == 3 }, 10*time.Second, time.Millisecond)
		s.Silence(false)
		require.Contains(t, <-held, "Rope, 30 m", "a request whose client has left changes nothing")
	})
}

func TestAServerCanComeBackAtItsAddress(t *testing.T) {
	for name, start := range map[string]func(string) (string, func(), error){
		"grpc": shop.NewGRPC(shop.NewCatalog()).Start,
		"http": shop.NewHTTP(shop.NewCatalog()).Start,
	} {
		addr, stop, err := start("127.0.0.1:0")
		require.NoError(t, err, name)
		_, _, err = start(addr)
		require.ErrorContains(t, err, "address already in use", name)
		stop()
		_, stop, err = start(addr)
		require.NoError(t, err, name)
		stop()
	}
}
