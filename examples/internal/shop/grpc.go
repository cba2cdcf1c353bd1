package shop

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/examples/internal/program"
	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
)

// GRPC serves a catalog as shop.v1.Catalog.
type GRPC struct {
	Gate
	shopv1.UnimplementedCatalogServer
	catalog *Catalog
}

// NewGRPC returns a service over c, to be registered with
// shopv1.RegisterCatalogServer or started with Start.
func NewGRPC(c *Catalog) *GRPC { return &GRPC{catalog: c} }

// Start serves on a TCP address such as "127.0.0.1:0" and returns the one it
// got. Stop ends the server and its connections at once.
func (g *GRPC) Start(address string) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, err
	}
	s := grpc.NewServer()
	shopv1.RegisterCatalogServer(s, g)
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) }) // nil after Stop
	return l.Addr().String(), func() {
		s.Stop()
		served.Wait() // a Serve that had not begun yet closes the listener now
	}, nil
}

// GetItem returns an item.
func (g *GRPC) GetItem(ctx context.Context, r *shopv1.GetItemRequest) (*shopv1.Item, error) {
	if err := g.enterCall(ctx, shopv1.Catalog_GetItem_FullMethodName); err != nil {
		return nil, err
	}
	return g.catalog.item(r.GetId())
}

// RenameItem gives an item another name.
func (g *GRPC) RenameItem(ctx context.Context, r *shopv1.RenameItemRequest) (*shopv1.Item, error) {
	if err := g.enterCall(ctx, shopv1.Catalog_RenameItem_FullMethodName); err != nil {
		return nil, err
	}
	return g.catalog.rename(r.GetId(), r.GetName())
}

// PlaceOrder orders, each time it is called.
func (g *GRPC) PlaceOrder(ctx context.Context, r *shopv1.PlaceOrderRequest) (*shopv1.Order, error) {
	if err := g.enterCall(ctx, shopv1.Catalog_PlaceOrder_FullMethodName); err != nil {
		return nil, err
	}
	return g.catalog.order(r.GetItemId(), r.GetQuantity())
}

// WatchPrices sends prices that rise by a cent from each to the next. A
// silence holds back the next one.
func (g *GRPC) WatchPrices(r *shopv1.WatchPricesRequest, stream grpc.ServerStreamingServer[shopv1.Price]) error {
	ctx := stream.Context()
	if err := g.enterCall(ctx, shopv1.Catalog_WatchPrices_FullMethodName); err != nil {
		return err
	}
	if r.GetCount() < 0 || r.GetEveryMs() < 0 {
		return status.Errorf(codes.InvalidArgument, "count %d, every_ms %d: want 0 or more", r.GetCount(), r.GetEveryMs())
	}
	it, err := g.catalog.item(r.GetItemId())
	if err != nil {
		return err
	}
	for n := int32(0); r.GetCount() == 0 || n < r.GetCount(); n++ {
		if n > 0 {
			if err := program.Pause(ctx, time.Duration(r.GetEveryMs())*time.Millisecond); err != nil {
				return status.FromContextError(err).Err()
			}
		}
		if err := g.wait(ctx); err != nil {
			return status.FromContextError(err).Err()
		}
		if err := stream.Send(&shopv1.Price{ItemId: it.GetId(), Cents: it.GetCents() + n}); err != nil {
			return err
		}
	}
	return nil
}

// enterCall is enter with a status for an error.
func (g *GRPC) enterCall(ctx context.Context, method string) error {
	if err := g.enter(ctx, method); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}
