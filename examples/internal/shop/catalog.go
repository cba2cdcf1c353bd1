package shop

import (
	"strconv"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
)

// Catalog is the shop's state, which a GRPC and an HTTP server may share. Its
// errors are gRPC statuses.
type Catalog struct {
	mu     sync.Mutex
	items  map[string]*shopv1.Item
	orders int
}

// NewCatalog returns a catalog of three items: "lamp", "rope" and "anchor".
func NewCatalog() *Catalog {
	c := &Catalog{items: map[string]*shopv1.Item{}}
	for _, it := range []*shopv1.Item{
		{Id: "lamp", Name: "Storm lamp", Cents: 2_950},
		{Id: "rope", Name: "Rope, 30 m", Cents: 4_200},
		{Id: "anchor", Name: "Anchor", Cents: 12_900},
	} {
		c.items[it.GetId()] = it
	}
	return c
}

// Orders returns how many orders were placed: more than the customers meant
// to, if somebody repeated what must not be repeated.
func (c *Catalog) Orders() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orders
}

func (c *Catalog) item(id string) (*shopv1.Item, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, err := c.find(id)
	if err != nil {
		return nil, err
	}
	return proto.CloneOf(it), nil
}

func (c *Catalog) rename(id, name string) (*shopv1.Item, error) {
	if name == "" {
		return nil, status.Error(codes.InvalidArgument, "an item needs a name")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	it, err := c.find(id)
	if err != nil {
		return nil, err
	}
	it.Name = name
	return proto.CloneOf(it), nil
}

func (c *Catalog) order(id string, quantity int32) (*shopv1.Order, error) {
	if quantity < 1 || quantity > 1_000 {
		return nil, status.Errorf(codes.InvalidArgument, "quantity %d: want 1 to 1000", quantity)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	it, err := c.find(id)
	if err != nil {
		return nil, err
	}
	c.orders++
	return &shopv1.Order{
		Id:       strconv.Itoa(c.orders),
		ItemId:   id,
		Quantity: quantity,
		Cents:    quantity * it.GetCents(),
	}, nil
}

// find needs the lock.
func (c *Catalog) find(id string) (*shopv1.Item, error) {
	it := c.items[id]
	if it == nil {
		return nil, status.Errorf(codes.NotFound, "no item %q", id)
	}
	return it, nil
}
