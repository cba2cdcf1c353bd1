package redisstore

import (
	"context"
	"fmt"
	"time"
)

// Watch is that of [breaker.Watcher]: it subscribes to the space's channel. It
// keeps a connection of the client's and two goroutines while it runs, and
// subscribes again by itself when the connection is lost.
func (s *Store) Watch(ctx context.Context, space string, wake func()) error {
	const patience = 5 * time.Second
	sub := s.client.Subscribe(ctx, s.channel(space))
	stop := context.AfterFunc(ctx, func() { sub.Close() })
	defer sub.Close()
	defer stop()
	if _, err := sub.ReceiveTimeout(ctx, patience); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("redisstore: %w", err)
	}
	wake()
	for range sub.Channel() { // it is closed with sub
		wake()
	}
	return nil
}
