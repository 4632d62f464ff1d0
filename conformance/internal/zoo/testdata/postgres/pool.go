package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// pool lends connections, four at most.
type pool struct {
	config *pgx.ConnConfig
	places chan struct{} // one for each connection that is lent
	idle   chan *pgx.Conn
	wait   time.Duration // for a connection

	mu   sync.Mutex
	made []*pgx.Conn
}

func newPool(dsn, schema string, size int) (*pool, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = schema
	config.RuntimeParams["timezone"] = "America/New_York"
	config.RuntimeParams["lock_timeout"] = "500ms"
	return &pool{config: config, places: make(chan struct{}, size), idle: make(chan *pgx.Conn, size), wait: 5 * time.Second}, nil
}

func (p *pool) acquire(ctx context.Context) (*pgx.Conn, error) {
	select {
	case p.places <- struct{}{}:
	case <-time.After(p.wait):
		return nil, errors.New("pool: timed out waiting for a free connection, all of them are in use")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case c := <-p.idle:
		return c, nil
	default:
	}
	c, err := pgx.ConnectConfig(context.WithoutCancel(ctx), p.config)
	if err != nil {
		<-p.places
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, c)
	return c, nil
}

func (p *pool) release(c *pgx.Conn) {
	if c.IsClosed() {
		<-p.places
		return
	}
	p.idle <- c
	<-p.places
}

// close ends all connections.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.made {
		_ = c.Close(context.Background())
	}
}
