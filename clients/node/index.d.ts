/** Anything that JSON holds. */
export type Json = any;

export interface StartOptions {
  /** Further flags of the command, such as `['--dialect', 'live']`. */
  args?: string[];
  /** Environment variables beside those of this process. */
  env?: Record<string, string>;
}

/** Start the REST API on this machine, with everything in memory, on a free port: `destkit serve`. */
export function startService(options?: StartOptions): Promise<Service>;

/** Start a custom destination that obeys every rule of the protocol: `destkit destsim`. */
export function startDestination(options?: StartOptions): Promise<Destination>;

export interface TestContext {
  service: Service;
  /** Made for this test, and deleted at its end. */
  organization: Organization;
  /** Starts a destination that stops at the end of the test. */
  startDestination(options?: StartOptions): Promise<Destination>;
}

export interface Service {
  readonly url: string;
  readonly apiUrl: string;
  readonly controlUrl: string;
  readonly version: string;
  /** Wrap the body of a test. When it fails, the error shows what the servers logged meanwhile. */
  test<Rest extends unknown[], Result>(
    body: (context: TestContext, ...rest: Rest) => Result | Promise<Result>,
  ): (...rest: Rest) => Promise<Result>;
  /** Create an organization with an admin, workspaces and tokens. */
  newOrganization(options?: { name?: string; workspaces?: string[] }): Promise<Organization>;
  /** Move the time of all organizations, by milliseconds or text such as `'24h'`; resolves when all that was due has run. */
  advance(duration: number | string): Promise<Json>;
  /** Wait until nothing is due and no run is active that can end by itself. */
  settle(): Promise<Json>;
  /** Fill the service from YAML; returns all ids and tokens by name. */
  seed(yaml: string): Promise<Json>;
  /** Make calls of the API fail, in every organization. */
  armFault(kind: ServiceFault, settings?: Record<string, Json>): Promise<Fault>;
  /** Delete all organizations but the first, journals, faults and mails. */
  reset(): Promise<void>;
  /** Call the control API; `GET /` lists what it has. */
  control(method: string, path: string, body?: Json, query?: Record<string, Json>): Promise<Json>;
  /** What the service has written to standard error, from a byte on. */
  log(since?: number): string;
  stop(): Promise<void>;
}

export interface Organization {
  readonly id: number;
  readonly apiUrl: string;
  readonly workspaceId: number;
  readonly workspaceApiKey: string;
  readonly personalAccessToken: string;
  readonly workspaces: { id: number; name: string; apiKey: string }[];
  /** Call the API with the workspace's key, or another token; resolves to the decoded JSON. */
  call(method: string, path: string, body?: Json, options?: { token?: string; query?: Record<string, Json> }): Promise<Json>;
  /** Create a connection to a destination, or to the URL of an endpoint; resolves to its id. */
  addDestination(destination: Destination | string, name?: string): Promise<number>;
  /** Trigger a sync and wait until the run has ended; whether it failed is in its `status` and `error_code`. */
  runSync(syncId: number, options?: { full?: boolean; timeout?: number }): Promise<Json>;
  /** Make calls of the API fail: `armFault('rate_limited', { operation: 'listSyncs', first_n: 1 })`. */
  armFault(kind: ServiceFault, settings?: Record<string, Json>): Promise<Fault>;
  /** The requests of the API, oldest first; filters are operation, method, status and fault. */
  requests(filters?: Record<string, Json>): Promise<Json[]>;
  /** The calls of destinations; filters are destination, method, outcome and status. */
  calls(filters?: Record<string, Json>): Promise<Json[]>;
  /** The e-mails of the service, oldest first; filters are to, kind and workspace. */
  mails(filters?: Record<string, Json>): Promise<Json[]>;
  /** Delete everything in it; the tokens stay. */
  reset(): Promise<void>;
  /** Delete it with everything in it. */
  delete(): Promise<void>;
}

export interface Destination {
  /** The endpoint. */
  readonly url: string;
  readonly controlUrl: string;
  /** The stored records of an object. */
  records(object: string): Promise<Json[]>;
  /** The calls that it has received; filters are method, object, operation, status and fault. */
  requests(filters?: Record<string, Json>): Promise<Json[]>;
  /** Make calls fail: `armFault('throttle', { seconds: 2, when: { method: 'sync_batch', first: 2 } })`. */
  armFault(kind: string, settings?: Record<string, Json>): Promise<Fault>;
  /** Delete all records, faults and changes of the schema. */
  reset(): Promise<void>;
  /** Call the control API; `GET /` lists what it has. */
  control(method: string, path: string, body?: Json): Promise<Json>;
  log(): string;
  stop(): Promise<void>;
}

export type ServiceFault = 'latency' | 'status' | 'rate_limited' | 'drop';

export interface Fault {
  readonly id: string;
  /** How often it has made a call fail: 0 says that a test has tested nothing. */
  fired(): Promise<number>;
  disarm(): Promise<void>;
}

/** The program cannot be started, or does not do what was asked of it. */
export class DestkitError extends Error {}

/** A response with a status of 400 or more. */
export class ApiError extends DestkitError {
  readonly status: number;
  /** Decoded JSON, or text where it is none. */
  readonly body: Json;
}
