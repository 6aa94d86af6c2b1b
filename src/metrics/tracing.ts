// Publishes every operation to diagnostics channels, and runs it in a span if tracing is on.
import type { TracingChannel } from "node:diagnostics_channel";
import { tracingChannel } from "../core/lazy-builtin.ts";

/** Details of an operation, for subscribers in this process only: a key may be private. */
export interface TraceDetails {
  readonly key?: string;
}

/** What subscribers of `xcache:<operation>` receive; Node adds `result` or `error`. */
export interface TraceContext extends TraceDetails {
  readonly operation: string;
  /** The `key_prefix` of the cache. */
  readonly prefix: string;
}

/** Traced operations, each on the channels `tracing:xcache:<operation>:*`. */
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

/** Created on first use, because 70 channels take a while; subscribers find a channel by its name, also before that. */
const channels = new Map<string, Channel | undefined>(TRACED_OPERATIONS.map((name) => [name, undefined]));

function channelOf(operation: string): Channel | undefined {
  let channel = channels.get(operation);
  if (channel === undefined && channels.has(operation)) {
    channel = tracingChannel<unknown, TraceContext>(`xcache:${operation}`);
    channels.set(operation, channel);
  }
  return channel;
}

let spans: SpanRunner | undefined;
let isLogged = false;
/** One flag for both, since the hot operations read it. */
let isAlwaysTraced = false;

/** Runs every operation in a span from now on; undefined: stops. */
export function runInSpans(runner: SpanRunner | undefined): void {
  spans = runner;
  isAlwaysTraced = isLogged || runner !== undefined;
}

/** Traces every operation from now on, for a log of decisions. */
export function traceForLog(): void {
  isLogged = true;
  isAlwaysTraced = true;
}

/** Whether anyone observes this operation. */
export function isTraced(operation: string): boolean {
  if (isAlwaysTraced) return true;
  const channel = channelOf(operation);
  return channel !== undefined && hasSubscribers(channel);
}

const gets = channelOf("get") as Channel;
const loads = channelOf("getOrSet") as Channel;
const sets = channelOf("set") as Channel;

// The hot operations avoid the Map lookup, whose cost is measurable. Each channel is a constant of its own, so that the
// compiler need not load it from an object.
const { start: getStart, end: getEnd, asyncStart: getAsyncStart, asyncEnd: getAsyncEnd } = gets;
const { start: loadStart, end: loadEnd, asyncStart: loadAsyncStart, asyncEnd: loadAsyncEnd } = loads;
const {
  start: setStart,
  end: setEnd,
  asyncStart: setAsyncStart,
  asyncEnd: setAsyncEnd,
  error: setError,
} = sets;

export const isGetTraced = (): boolean => isAlwaysTraced || hasSubscribers(gets);
export const isLoadTraced = (): boolean => isAlwaysTraced || hasSubscribers(loads);
export const isSetTraced = (): boolean =>
  isAlwaysTraced ||
  setStart.hasSubscribers ||
  setAsyncEnd.hasSubscribers ||
  setError.hasSubscribers ||
  setEnd.hasSubscribers ||
  setAsyncStart.hasSubscribers;

/** Whether anyone observes a get that is a hit; subscribers of errors alone do not. */
export const isGetHitTraced = (): boolean =>
  isAlwaysTraced ||
  getStart.hasSubscribers ||
  getAsyncEnd.hasSubscribers ||
  getEnd.hasSubscribers ||
  getAsyncStart.hasSubscribers;

/** Like `isGetHitTraced`, for getOrSet. */
export const isLoadHitTraced = (): boolean =>
  isAlwaysTraced ||
  loadStart.hasSubscribers ||
  loadAsyncEnd.hasSubscribers ||
  loadEnd.hasSubscribers ||
  loadAsyncStart.hasSubscribers;

/** Not `channel.hasSubscribers`: the compiler can inline the checks of the individual channels. */
function hasSubscribers({ start, end, asyncStart, asyncEnd, error }: Channel): boolean {
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
  const channel = channelOf(context.operation);
  if (channel === undefined || !hasSubscribers(channel)) return inSpan();
  return channel.tracePromise(inSpan, context);
}
