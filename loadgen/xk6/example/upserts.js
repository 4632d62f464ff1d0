// 50 batches per second for a minute, on as many machines as the operator of k6
// is told to take: each sends its share.
//
//   k6 run -e DESTKIT_URL=https://example.com/destination -e DESTKIT_TOKEN=… \
//     -e OBJECT=contact example/upserts.js
import { check } from 'k6';
import destkit from 'k6/x/destkit';

const d = destkit.destination(__ENV.DESTKIT_URL, {
  token: __ENV.DESTKIT_TOKEN,
  object: __ENV.OBJECT,
  operation: 'upsert',
  batchSize: __ENV.BATCH_SIZE || 100,
  maxRecords: __ENV.MAX_RECORDS, // of all machines together; undefined: no bound
  write: true, // without it nothing is sent
});

export const options = {
  scenarios: {
    upserts: {
      executor: 'constant-arrival-rate',
      rate: Number(__ENV.RATE || 50),
      timeUnit: '1s',
      duration: __ENV.DURATION || '1m',
      preAllocatedVUs: 20,
      maxVUs: 200,
    },
  },
  thresholds: {
    destkit_batch_failed: ['rate<0.001'],
    destkit_batch_duration: [`p(99)<${__ENV.P99_MS || 500}`],
    'destkit_errors{kind:timeout}': ['count==0'],
  },
};

export default function () {
  const r = d.syncBatch();
  check(r, {
    'every record was acknowledged': (r) => r.ok,
    'the status is 200': (r) => r.status === 200,
  });
  for (const e of r.errors) {
    console.warn(`${e.kind}: ${e.message} (${e.count} times, request ${r.id})`);
  }
}
