// The round trip that every generated client makes. An adapter calls the client
// with its own types; what it answers must fit the few types here.

declare const process: {
  env: Record<string, string | undefined>;
  exitCode?: number;
};

const given = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
};

export const base = given('CLIENT_BASE');
export const token = given('CLIENT_TOKEN');
export const endpoint = given('CLIENT_ENDPOINT');
const control = given('CLIENT_CONTROL');
// In the live dialect an update holds what changes and nothing else.
export const partial = given('CLIENT_DIALECT') === 'live';

export interface Failure {
  http: number;
  status: string | number;
  message?: string;
  errors?: Array<{ field: string; message: string }>;
}

export interface Service {
  counts(): Promise<{ sources: number; destinations: number; syncs: number }>;
  sourceTypes(): Promise<Array<{ service_name: string; rules: number }>>;
  createSource(): Promise<number>;
  tables(source: number): Promise<string[]>;
  createDestination(): Promise<{ id: number; objects: string[] }>;
  createSync(source: number, destination: number): Promise<number>;
  pauseAndResume(sync: number): Promise<void>;
  sync(id: number): Promise<{ status: string; mappings: number; unset: unknown[] }>;
  trigger(sync: number): Promise<number>;
  run(id: number): Promise<{ status: string; records_updated: number | null; error_code: string | null }>;
  records(run: number): Promise<Array<string | number | null>>;
  missing(): Promise<Failure>;
  refused(): Promise<Failure>;
}

const settled = async (): Promise<void> => {
  const reply = await fetch(`${control}/settle`, { method: 'POST' });
  if (!reply.ok) throw new Error(`settle answered ${reply.status}`);
};

// ok gives what a call that must succeed answered.
export const ok = <T>(value: T | undefined, what: string, problem?: unknown): T => {
  if (value === undefined) throw new Error(`${what}: ${JSON.stringify(problem)}`);
  return value;
};

const play = async (service: Service): Promise<unknown> => {
  const before = await service.counts();
  const types = await service.sourceTypes();
  const source = await service.createSource();
  const tables = await service.tables(source);
  const destination = await service.createDestination();
  const sync = await service.createSync(source, destination.id);
  const created = await service.sync(sync);
  await service.pauseAndResume(sync);
  const run = await service.trigger(sync);
  await settled();
  return {
    before,
    known: types.some((t) => t.service_name === 'generator' && t.rules > 0),
    tables,
    objects: destination.objects.includes('person'),
    created,
    run: await service.run(run),
    records: (await service.records(run)).length,
    after: await service.counts(),
    synced: (await service.sync(sync)).status,
    missing: await service.missing(),
    refused: await service.refused(),
  };
};

// roundTrip prints what was seen as one line of JSON; the test looks at it.
export const roundTrip = (service: Service): void => {
  play(service).then(
    (seen) => console.log(JSON.stringify(seen)),
    (problem: unknown) => {
      console.error(problem);
      process.exitCode = 1;
    },
  );
};
