// Tells tracers of every operation: through diagnostics channels, and as spans where somebody has asked for them.
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";

/** What is known of an operation when it begins. In this process only: a key may be private. */
export interface TraceDetails {
  readonly key?: string;
}

/** What subscribers of `xcache:<operation>` are handed; Node adds `result` or `error` to it. */
export interface TraceContext extends TraceDetails {
  readonly operation: string;
  /** The `key_prefix` of the cache. */
  readonly prefix: string;
}

/** The operations that are traced, each on a channel `tracing:xcache:<operation>:*`. */
export const TRACED_OPERATIONS = [
  "get",
  "getMany",
  "set",
  "setMany",
  "getOrSet",
  "exists",
  "delete",
  "ttl",
  "tags",
  "invalidateTags",
  "invalidatePattern",
  "clear",
  "getStats",
  "fuzzySearch",
] as const;

type Channel = TracingChannel<unknown, TraceContext>;
/** Runs an operation inside a span. */
export type SpanRunner = <T>(context: TraceContext, work: () => Promise<T>) => Promise<T>;

const channels: ReadonlyMap<string, Channel> = new Map(
  TRACED_OPERATIONS.map((operation) => [
    operation,
    tracingChannel<unknown, TraceContext>(`xcache:${operation}`),
  ]),
);

let spans: SpanRunner | undefined;

/** Makes every operation run inside a span from now on; undefined: no more. */
export function runInSpans(runner: SpanRunner | undefined): void {
  spans = runner;
}

/** Whether somebody would be told of this operation. */
export function isTraced(operation: string): boolean {
  if (spans !== undefined) return true;
  const channel = channels.get(operation);
  return channel !== undefined && isWatched(channel);
}

const gets = channels.get("get") as Channel;
const loads = channels.get("getOrSet") as Channel;
const sets = channels.get("set") as Channel;

// What is done so often that a look into a Map would show. Each in a constant of its own: so the compiler need not look for
// the object that it asks.
const { start: getStart, end: getEnd, asyncStart: getAsyncStart, asyncEnd: getAsyncEnd } = gets;
const { start: loadStart, end: loadEnd, asyncStart: loadAsyncStart, asyncEnd: loadAsyncEnd } = loads;
const {
  start: setStart,
  end: setEnd,
  asyncStart: setAsyncStart,
  asyncEnd: setAsyncEnd,
  error: setError,
} = sets;

export const isGetTraced = (): boolean => spans !== undefined || isWatched(gets);
export const isLoadTraced = (): boolean => spans !== undefined || isWatched(loads);
export const isSetTraced = (): boolean =>
  spans !== undefined ||
  setStart.hasSubscribers ||
  setAsyncEnd.hasSubscribers ||
  setError.hasSubscribers ||
  setEnd.hasSubscribers ||
  setAsyncStart.hasSubscribers;

/** Whether somebody would be told of a get that is a hit: no one who waits for errors alone. */
export const isGetHitTraced = (): boolean =>
  spans !== undefined ||
  getStart.hasSubscribers ||
  getAsyncEnd.hasSubscribers ||
  getEnd.hasSubscribers ||
  getAsyncStart.hasSubscribers;

/** As `isGetHitTraced`, of getOrSet. */
export const isLoadHitTraced = (): boolean =>
  spans !== undefined ||
  loadStart.hasSubscribers ||
  loadAsyncEnd.hasSubscribers ||
  loadEnd.hasSubscribers ||
  loadAsyncStart.hasSubscribers;

/** Not `channel.hasSubscribers`: asking its parts is what the compiler can take apart. */
function isWatched({ start, end, asyncStart, asyncEnd, error }: Channel): boolean {
  return (
    start.hasSubscribers ||
    asyncEnd.hasSubscribers ||
    error.hasSubscribers ||
    end.hasSubscribers ||
    asyncStart.hasSubscribers
  );
}

export function traced<T>(context: TraceContext, work: () => Promise<T>): Promise<T> {
  const runner = spans;
  const inSpan = runner === undefined ? work : () => runner(context, work);
  const channel = channels.get(context.operation);
  if (channel === undefined || !isWatched(channel)) return inSpan();
  return channel.tracePromise(inSpan, context);
}
