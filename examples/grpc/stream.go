package main

import (
	"context"
	"io"

	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
)

// watch receives prices, and tells after each how many there were. It is written
// as without the kit: what is repeated, and where the limits are, is the policy's.
func watch(ctx context.Context, client shopv1.CatalogClient, count int32, tell func(n int)) error {
	stream, err := client.WatchPrices(ctx, &shopv1.WatchPricesRequest{ItemId: "lamp", Count: count, EveryMs: 20})
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		_, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		tell(n)
	}
}
