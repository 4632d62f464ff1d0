package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// sending puts records on their way to the destination: in batches, as fast as it
// allows, again where it may help.
type sending struct {
	*terms
	progress *progress
	booking  *booking

	room      room
	calls     caller
	responses responses
	traffic   traffic
	inFlight  *semaphore
	speed     rpc.Speed
	swap      *swap  // nil: records count one by one
	sends     sender // the destination, or its replacement under way

	mu sync.Mutex // of the lowest marks of the high-water mark and of the stream
}

// sender takes batches.
type sender interface {
	Send(ctx context.Context, plan *destination.Plan, records [][]byte) (destination.Reply, error)
}

// pace queries how fast to send and sets the limits up (spec 8).
func (s *sending) pace(ctx context.Context) error {
	s.calls.gate = &gate{clock: s.options.Clock, limiter: s.options.Limiter(s.job.Connection)}
	if s.options.Deviations.LimitOfRun {
		s.calls.gate.limiter = pace.NewLimiter()
	}
	attempts := s.calls.backoff.Attempts
	if s.options.Deviations.SpeedOnce {
		attempts = 1
	}
	err := s.calls.persist(ctx, attempts, 0, s.options.PlanTimeout, func(ctx context.Context) (int64, error) {
		speed, err := s.job.Destination.Speed(ctx)
		s.speed = speed.Speed
		return speed.RateLimit, err
	})
	var whole *wholeError
	if errors.As(err, &whole) {
		return ofCall(whole.cause)
	}
	if err != nil {
		return err
	}
	v := &s.speed
	if v.MaximumBatchSize < 1 || v.MaximumParallelBatches < 1 || v.MaximumRecordsPerSecond < 1 {
		return failed(CodeSpeed, nil, "get_sync_speed answered %d, %d and %d for maximum_batch_size, maximum_parallel_batches and maximum_records_per_second: each must be 1 or more",
			v.MaximumBatchSize, v.MaximumParallelBatches, v.MaximumRecordsPerSecond)
	}
	if !s.options.Deviations.Uncapped {
		v.MaximumParallelBatches = min(v.MaximumParallelBatches, maxParallel)
	}
	v.MaximumBatchSize = min(v.MaximumBatchSize, v.MaximumRecordsPerSecond)
	if size := s.job.Settings.BatchSize; size > 0 {
		v.MaximumBatchSize = min(v.MaximumBatchSize, size)
	}
	s.calls.gate.records.Rate = v.MaximumRecordsPerSecond
	s.staff(int(v.MaximumParallelBatches))
	return nil
}

// staff lets so many batches be on their way at once.
func (s *sending) staff(size int) {
	s.inFlight = newSemaphore(s.options.Clock, fmt.Sprintf("batch of sync %d", s.job.Sync), size)
}

// phase is one pass of batches; in the last round nothing is kept for later.
func (s *sending) phase(wire string, round int, refused *spool) *phase {
	if round >= s.calls.backoff.Rounds || s.options.Deviations.OneRound {
		refused = nil
	}
	return &phase{wire: wire, delete: wire == rpc.OperationDelete, round: round, refused: refused}
}

// packer cuts items into batches and gives them to the semaphore.
func (s *sending) packer(ctx context.Context, p *phase) *packer {
	if s.dry != nil {
		return s.dry.packer()
	}
	return &packer{records: int(min(s.speed.MaximumBatchSize, 1<<20)), bytes: batchBytes(s.speed.MaximumParallelBatches), wide: func(n int) { s.room.clear(ctx, s.inFlight, n) }, send: func(b *batch) error {
		done := s.room.admit(ctx, s.inFlight, len(b.arena))
		err := s.inFlight.do(ctx, func(ctx context.Context) {
			defer done()
			s.deliver(ctx, p, b)
		})
		if err != nil {
			done()
		}
		return err
	}}
}

// retry sends the refused records again, round by round, with a wait before
// each that doubles. It closes refused.
func (s *sending) retry(ctx context.Context, wire string, refused *spool) error {
	for round := 2; refused.count > 0; round++ {
		s.progress.enter(StepRetrying)
		if err := s.options.Clock.Rest(ctx, s.calls.wait(round)); err != nil {
			return fmt.Errorf("wait for another round: %w", err)
		}
		next := s.newSpool()
		err := s.sendSpool(ctx, refused, s.phase(wire, round, next))
		err = errors.Join(err, refused.close())
		refused = next
		if err != nil {
			return errors.Join(err, next.close())
		}
	}
	return refused.close()
}

func (s *sending) sendSpool(ctx context.Context, from *spool, p *phase) error {
	pack := s.packer(ctx, p)
	err := from.each(s.apart(ctx, pack))
	if err == nil {
		err = pack.flush()
	}
	s.inFlight.wait(ctx)
	if own := s.progress.ended(); own != nil {
		return own
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
