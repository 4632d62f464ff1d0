// Three kinds of batches in a closed loop; what was written is deleted at the end,
// and a journal names what may be left.
//
//   k6 run -e DESTKIT_URL=https://example.com/destination -e DESTKIT_TOKEN=… \
//     -e OBJECT=contact --vus 10 --duration 30s example/mixed.js
//   destkit load clean --journal journal.json https://example.com/destination
import { check } from 'k6';
import destkit from 'k6/x/destkit';

const d = destkit.destination(__ENV.DESTKIT_URL, {
  token: __ENV.DESTKIT_TOKEN,
  object: __ENV.OBJECT,
  operation: { upsert: 8, update: 3, delete: 1 },
  batchSize: __ENV.BATCH_SIZE || 100,
  maxRecords: __ENV.MAX_RECORDS,
  write: true,
});

export default function () {
  check(d.syncBatch(), { 'every record was acknowledged': (r) => r.ok });
}

// Every instance deletes its own.
export function teardown() {
  const gone = d.cleanup();
  console.log(`${gone.deleted} records deleted, ${gone.left} left ${gone.reasons}`);
}

export function handleSummary(data) {
  const batches = data.metrics.destkit_batches;
  if (!batches) {
    return { stdout: 'nothing was sent\n' };
  }
  const duration = data.metrics.destkit_batch_duration.values;
  return {
    stdout: `${batches.values.count} batches, p(95) ${duration['p(95)'].toFixed(1)} ms\n`,
    [__ENV.JOURNAL || 'journal.json']: d.journal(),
  };
}
