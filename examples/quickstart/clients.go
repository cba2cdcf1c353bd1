package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/shop"
	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw"
)

// request is what a worker asks of the shop.
type request int

const (
	look request = iota
	rename
	buy
)

// caller makes one call, within callTimeout.
type caller func(context.Context, request) error

// subject is a server and its client.
type subject struct {
	gate *shop.Gate
	call caller
	stop func()
}

// dialOptions is all that the kit changes about a gRPC client. Nil is none.
func dialOptions(kit *holdfast.Kit) ([]grpc.DialOption, error) {
	if kit == nil {
		return nil, nil
	}
	interceptors, err := grpcmw.New(kit)
	if err != nil {
		return nil, err
	}
	return interceptors.DialOptions(), nil
}

// transport is all that the kit changes about an HTTP client. Nil is none.
func transport(base http.RoundTripper, kit *holdfast.Kit) (http.RoundTripper, error) {
	if kit == nil {
		return base, nil
	}
	return httpmw.New(base, kit)
}

// startGRPC starts the shop over gRPC, and a client of it.
func startGRPC(kit *holdfast.Kit) (*subject, error) {
	options, err := dialOptions(kit)
	if err != nil {
		return nil, err
	}
	server := shop.NewGRPC(shop.NewCatalog())
	addr, stop, err := server.Start("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	creds := grpc.WithTransportCredentials(insecure.NewCredentials())
	conn, err := grpc.NewClient(addr, append(options, creds)...)
	if err != nil {
		stop()
		return nil, err
	}
	return &subject{&server.Gate, overGRPC(conn), func() { _ = conn.Close(); stop() }}, nil
}

// startHTTP starts the shop over HTTP, and a client of it.
func startHTTP(kit *holdfast.Kit) (*subject, error) {
	base, err := transport(&http.Transport{MaxIdleConnsPerHost: full.workers}, kit)
	if err != nil {
		return nil, err
	}
	server := shop.NewHTTP(shop.NewCatalog())
	addr, stop, err := server.Start("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: base, Timeout: callTimeout}
	return &subject{&server.Gate, overHTTP(client, "http://"+addr), func() { client.CloseIdleConnections(); stop() }}, nil
}

func overGRPC(conn grpc.ClientConnInterface) caller {
	catalog := shopv1.NewCatalogClient(conn)
	return func(ctx context.Context, what request) (err error) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		switch what {
		case look:
			_, err = catalog.GetItem(ctx, &shopv1.GetItemRequest{Id: "lamp"})
		case rename:
			_, err = catalog.RenameItem(ctx, &shopv1.RenameItemRequest{Id: "rope", Name: "Rope"})
		case buy:
			_, err = catalog.PlaceOrder(ctx, &shopv1.PlaceOrderRequest{ItemId: "lamp", Quantity: 1})
		}
		return err
	}
}

func overHTTP(client *http.Client, url string) caller {
	return func(ctx context.Context, what request) error {
		switch what {
		case rename:
			return send(ctx, client, http.MethodPut, url+"/items/rope", `{"name": "Rope"}`)
		case buy:
			return send(ctx, client, http.MethodPost, url+"/orders", `{"item_id": "lamp", "quantity": 1}`)
		}
		return send(ctx, client, http.MethodGet, url+"/items/lamp", "")
	}
}

// send makes a request and reads the answer to its end.
func send(ctx context.Context, client *http.Client, method, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s", method, url, resp.Status)
	}
	return nil
}
