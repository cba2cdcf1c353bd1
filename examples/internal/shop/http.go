package shop

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/examples/internal/shop/shopv1"
)

// The routes of [HTTP], as http.ServeMux patterns. Bodies are the JSON form of
// the messages in shop.proto, names as they are written there.
const (
	GetItem    = "GET /items/{id}" // HEAD too
	RenameItem = "PUT /items/{id}"
	PlaceOrder = "POST /orders"
)

// maxBody is the largest request body that is read, in bytes.
const maxBody = 64 << 10

// HTTP serves a catalog as an http.Handler.
type HTTP struct {
	Gate
	mux http.ServeMux
}

// NewHTTP returns a handler over c.
func NewHTTP(c *Catalog) *HTTP {
	h := &HTTP{}
	h.handle(GetItem, http.StatusOK, func(r *http.Request, _ []byte) (proto.Message, error) {
		return c.item(r.PathValue("id"))
	})
	h.handle(RenameItem, http.StatusOK, func(r *http.Request, body []byte) (proto.Message, error) {
		var in shopv1.RenameItemRequest
		if err := fromJSON(body, &in); err != nil {
			return nil, err
		}
		return c.rename(r.PathValue("id"), in.GetName())
	})
	h.handle(PlaceOrder, http.StatusCreated, func(_ *http.Request, body []byte) (proto.Message, error) {
		var in shopv1.PlaceOrderRequest
		if err := fromJSON(body, &in); err != nil {
			return nil, err
		}
		return c.order(in.GetItemId(), in.GetQuantity())
	})
	return h
}

// Start serves on a TCP address such as "127.0.0.1:0" and returns the one it
// got. Stop ends the server, its connections and its requests at once. HTTP/2
// without TLS is served too, to clients that begin with it.
func (h *HTTP) Start(address string) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler:           h,
		Protocols:         &protocols,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) }) // http.ErrServerClosed after Close
	return l.Addr().String(), func() {
		cancel()
		_ = s.Close()
		served.Wait()
	}, nil
}

// ServeHTTP answers a request by one of the routes.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

func (h *HTTP) handle(pattern string, ok int, answer func(*http.Request, []byte) (proto.Message, error)) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		// The whole body first: until it is read, net/http does not notice on
		// HTTP/1.1 that a client has left, and a silent handler would stay.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if h.enter(r.Context(), pattern) != nil {
			panic(http.ErrAbortHandler) // nobody waits for an answer
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		m, err := answer(r, body)
		if err != nil {
			http.Error(w, status.Convert(err).Message(), httpStatus(status.Code(err)))
			return
		}
		out, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(ok)
		_, _ = w.Write(out)
	})
}

func fromJSON(body []byte, m proto.Message) error {
	if err := protojson.Unmarshal(body, m); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return nil
}

func httpStatus(c codes.Code) int {
	switch c {
	case codes.NotFound:
		return http.StatusNotFound
	case codes.InvalidArgument:
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}
