// What the dashboard's page asks for, as JSON. Nothing here is counted in the figures it shows.
import { adviceFrom, takeSample, uncountedHealth, uncountedStats } from "../advice/advise.ts";
import type { EntrySample } from "../advice/entry-sample.ts";
import { alertPatterns } from "../alerts/patterns.ts";
import { type EntryInfo, type EntryPage, type EntryScanOptions, entryInfo } from "../cache/entry-pages.ts";
import { resolveConfig } from "../config/resolve.ts";
import { FIELD_NAMES, type FieldName, wireName } from "../config/schema.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { CodecError, InvalidKeyError, XCacheError } from "../core/errors.ts";
import { requireKey } from "../core/keys.ts";
import { redactUrl } from "../core/redact.ts";
import type { FleetActivity, FleetMinute } from "../core/stats.ts";
import { fuzzySearch } from "../search/fuzzy.ts";
import { VERSION } from "../version.ts";
import type { CheckedOptions } from "./checked-options.ts";
import { shownValue, wholeValue } from "./shown-value.ts";

/** A request that makes no sense; answered with 400. */
export class BadRequest extends Error {}

/** One row of the settings. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  readonly origin: string;
}

/** What the command line adds to the page. */
export interface DashboardExtras {
  readonly settings?: readonly Setting[];
  /** Checks of the set-up. */
  readonly doctor?: () => Promise<readonly unknown[]>;
}

export interface Allowed {
  readonly writes: boolean;
  readonly values: boolean;
}

const RANGES = [900, 3_600, 21_600, 86_400, 604_800];
const POINTS = 60;
const LIVE_EVERY_MS = 2_000;
/** How long a sample of the entries is used before another one is taken. */
const SAMPLE_MS = 30_000;
/** Entries looked at per second at most, so that a scan of the page does not slow the application. */
const SCANNED_PER_SECOND = 50_000;
const MOST_KEYS = 200;
const MOST_SIMILAR = 50;
/** Two typos in a text of six characters. */
const LEAST_SIMILAR = 66;
/** How long a scan waits for the one before it. */
const LONGEST_TURN_MS = 10_000;

type Body = Readonly<Record<string, unknown>>;

export class DashboardData {
  readonly #options: CheckedOptions;
  readonly #extras: DashboardExtras;
  readonly #clock: Clock;
  #sample: { readonly at: number; readonly sample: EntrySample | undefined } | undefined;
  #scanning: Promise<unknown> = Promise.resolve();

  /** `clock` is for tests. */
  constructor(options: CheckedOptions, extras: DashboardExtras, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#options = options;
    this.#extras = extras;
  }

  async overview(body: Body, allowed: Allowed): Promise<unknown> {
    const seconds = rangeOf(body);
    const { cache, inside } = this.#options;
    const stats = await uncountedStats(inside, seconds);
    const activity = await inside.instruments.history.activity(seconds);
    const health = await uncountedHealth(cache, inside);
    const sample = await this.#recentSample(stats.totalKeys, activity);
    const { root } = inside;
    const { history, ...totals } = stats;
    return {
      now: inside.namespace().records.now(),
      version: VERSION,
      prefix: root.config.keyPrefix,
      address: redactUrl(root.config.kvUrl),
      backend: root.store.backend.name,
      listable: root.store.backend.capabilities.scan,
      nearTier: root.config.nearCache !== false,
      metrics: root.config.enableMetrics,
      allowed,
      seconds,
      totals,
      points: downsampled(history, inside.namespace().records.now(), seconds),
      memoryUsage: health.performanceMetrics.memoryUsage,
      health: { status: health.status, checks: health.checks, circuitBreaker: health.circuitBreaker },
      processes: activity.processes,
      functions: activity.functions.map(({ history: minutes, ...each }) => ({
        ...each,
        ttlSeconds: finite(each.ttlSeconds),
        points: minutes.slice(-POINTS).map(({ at, calls, hits }) => [Date.parse(at), calls, hits]),
      })),
      invalidations: activity.invalidations.slice(-500),
      advice: adviceFrom(inside, { stats, activity, health, sample }),
      sample: sample && {
        sampled: sample.sampled,
        total: sample.total,
        stale: sample.stale,
        withoutTtl: sample.withoutTtl,
        prefixes: sample.prefixes,
      },
    };
  }

  /** The overview again and again, until the reader goes away. A store that fails is said, and tried again. */
  async *live(body: Body, allowed: Allowed, signal: AbortSignal): AsyncIterable<unknown> {
    while (!signal.aborted) {
      try {
        yield { overview: await this.overview(body, allowed) };
      } catch (error) {
        yield { failed: messageOf(error) };
      }
      await this.#pause(LIVE_EVERY_MS, signal);
    }
  }

  /**
   * Entries as they are found, with how many were looked at. One scan at a time; it ends with its reader. An exact key is
   * looked up besides. `similar`: the keys that resemble a text, best first.
   */
  async *keys(body: Body, signal: AbortSignal): AsyncIterable<unknown> {
    const options = scanOptions(body);
    const exact = textIn(body, "exact");
    if (exact !== undefined && exact !== "") {
      const found = await this.#inspected(exact);
      if (found !== undefined) yield { exact: row(found) };
    }
    const similar = textIn(body, "similar");
    const limit = limitIn(body);
    yield* this.#inTurn(signal, () =>
      similar === undefined || similar === ""
        ? this.#scan(options, limit, signal)
        : this.#similar(similar, options, Math.min(limit, MOST_SIMILAR), signal),
    );
  }

  async *#similar(
    text: string,
    options: EntryScanOptions,
    limit: number,
    signal: AbortSignal,
  ): AsyncIterable<unknown> {
    let scanned = 0;
    const paced = this.#paced({ ...options, types: false }, signal);
    async function* keys(): AsyncIterable<readonly string[]> {
      for await (const page of paced) {
        scanned += page.scanned;
        yield page.entries.map(({ key }) => key);
      }
    }
    const matches = await fuzzySearch(keys(), text, { threshold: LEAST_SIMILAR, limit, signal });
    const found = await Promise.all(matches.map(({ key }) => this.#inspected(key)));
    yield { entries: found.filter((entry) => entry !== undefined).map(row), scanned };
    yield { done: true, scanned };
  }

  /** A damaged entry is no reason not to list the others. */
  async #inspected(key: string): Promise<EntryInfo | undefined> {
    try {
      return await this.#options.cache.inspect(key);
    } catch (error) {
      if (error instanceof CodecError) return undefined;
      throw error;
    }
  }

  /** A scan that does not slow the application. */
  async *#paced(options: EntryScanOptions, signal: AbortSignal): AsyncIterable<EntryPage> {
    for await (const page of this.#options.cache.scan({ ...options, signal })) {
      yield page;
      await this.#pause((page.scanned / SCANNED_PER_SECOND) * 1_000, signal);
    }
  }

  async *#scan(options: EntryScanOptions, limit: number, signal: AbortSignal): AsyncIterable<unknown> {
    let shown = 0;
    let scanned = 0;
    let cursor: string | undefined;
    for await (const page of this.#paced(options, signal)) {
      scanned += page.scanned;
      shown += page.entries.length;
      cursor = page.cursor;
      yield { entries: page.entries.map(row), scanned };
      if (shown >= limit) break;
      cursor = undefined;
    }
    yield { done: cursor === undefined, scanned, ...(cursor !== undefined && { cursor }) };
  }

  /** Every entry, in its turn; undefined if the reader has gone. */
  async #wholeSample(
    total: number,
    activity: FleetActivity,
    signal: AbortSignal,
  ): Promise<EntrySample | undefined> {
    const { cache, inside } = this.#options;
    const paced = { scan: () => this.#paced({}, signal), healthCheck: () => cache.healthCheck() };
    async function* count(): AsyncIterable<EntrySample | undefined> {
      yield await takeSample(paced, inside, total, activity, Number.POSITIVE_INFINITY);
    }
    for await (const sample of this.#inTurn(signal, count)) return sample;
    return undefined;
  }

  async *#inTurn<T>(signal: AbortSignal, work: () => AsyncIterable<T>): AsyncIterable<T> {
    const before = this.#scanning;
    let end: () => void = () => {};
    this.#scanning = new Promise<void>((resolve) => {
      end = resolve;
    });
    try {
      // A reader that has stopped reading must not keep the others waiting.
      await Promise.race([before, this.#pause(LONGEST_TURN_MS, signal)]);
      if (!signal.aborted) yield* work();
    } finally {
      end();
    }
  }

  async entry(body: Body, { values }: Allowed): Promise<unknown> {
    const key = keyIn(body);
    const found = await this.#options.inside.namespace().examine(key);
    if (found === undefined) return { missing: true };
    const shown = values ? shownValue(found.value, this.#options.redact) : undefined;
    const info = row(entryInfo(found, shown?.type));
    return { ...info, ...(shown !== undefined && { value: shown }) };
  }

  async download(body: Body): Promise<Uint8Array | string | undefined> {
    const found = await this.#options.inside.namespace().examine(keyIn(body));
    return found === undefined ? undefined : wholeValue(found.value, this.#options.redact);
  }

  async tags(body: Body, signal: AbortSignal): Promise<unknown> {
    const { inside } = this.#options;
    const { totalKeys } = await uncountedStats(inside, 60);
    const activity = await inside.instruments.history.activity(3_600);
    const isExact = body.exact === true;
    const sample = isExact
      ? await this.#wholeSample(totalKeys, activity, signal)
      : await this.#recentSample(totalKeys, activity);
    const loads = activity.functions.reduce((sum, each) => sum + each.loads, 0);
    const slowest = activity.functions.reduce((most, each) => Math.max(most, each.p95LoadTime), 0);
    return { sample, loadsPerSecond: loads / 3_600, p95LoadTime: slowest };
  }

  settings(): { readonly settings: readonly Setting[]; readonly patterns: readonly unknown[] } {
    const { inside, values, writes, hosts, alerts } = this.#options;
    const own: readonly Setting[] = [
      { name: "dashboard: writes", value: writes ? "allowed" : "off", origin: writes ? "code" : "default" },
      { name: "dashboard: values", value: values ? "shown" : "hidden", origin: values ? "code" : "default" },
      {
        name: "dashboard: hosts",
        value: hosts ? [...hosts].join(", ") : "any",
        origin: hosts ? "code" : "default",
      },
    ];
    const deliveries = alerts && {
      name: "alert deliveries",
      value: Object.entries(alerts.deliveries)
        .map(([name, count]) => `${count} ${name}`)
        .join(", "),
      origin: "since start",
    };
    return {
      settings: [
        ...(this.#extras.settings ?? configured(inside.root.config)),
        ...own,
        ...(deliveries ? [deliveries] : []),
      ],
      patterns: alertPatterns({}),
    };
  }

  async doctor(): Promise<unknown> {
    return { findings: (await this.#extras.doctor?.()) ?? [] };
  }

  async #recentSample(total: number, activity: FleetActivity): Promise<EntrySample | undefined> {
    const { cache, inside } = this.#options;
    const now = this.#clock.now();
    if (this.#sample === undefined || now - this.#sample.at > SAMPLE_MS) {
      this.#sample = { at: now, sample: await takeSample(cache, inside, total, activity) };
    }
    return this.#sample.sample;
  }

  /** After a change the sample is out of date. */
  forgetSample(): void {
    this.#sample = undefined;
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(ms, done);
      function done(): void {
        timer.cancel();
        signal.removeEventListener("abort", done);
        resolve();
      }
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }
}

/** What a visitor may know of an error: those of others may say anything. */
export function messageOf(error: unknown): string {
  if (error instanceof XCacheError || error instanceof BadRequest) return error.message;
  return "the dashboard failed; the application's log may say more";
}

/** JSON has no Infinity. */
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

function row(entry: EntryInfo): object {
  return { ...entry, ttl: finite(entry.ttl), staleFor: finite(entry.staleFor) };
}

function rangeOf({ range }: Body): number {
  if (range === undefined) return 3_600;
  if (typeof range === "number" && RANGES.includes(range)) return range;
  throw new BadRequest(`range must be one of ${RANGES.join(", ")} seconds`);
}

function textIn(body: Body, name: string): string | undefined {
  const value = body[name];
  if (value === undefined || value === null || typeof value === "string") return value ?? undefined;
  throw new BadRequest(`${name} must be a string`);
}

export function keyIn(body: Body): string {
  const key = textIn(body, "key");
  try {
    requireKey(key);
  } catch (error) {
    if (error instanceof InvalidKeyError) throw new BadRequest(error.message);
    throw error;
  }
  return key;
}

function limitIn({ limit = 100 }: Body): number {
  if (typeof limit === "number" && Number.isInteger(limit) && limit > 0) return Math.min(limit, MOST_KEYS);
  throw new BadRequest("limit must be a whole number above 0");
}

function scanOptions(body: Body): EntryScanOptions {
  const [prefix, match, tag, type, cursor, state] = ["prefix", "match", "tag", "type", "cursor", "state"].map(
    (name) => {
      const text = textIn(body, name);
      return text === "" ? undefined : text;
    },
  );
  if (state !== undefined && state !== "fresh" && state !== "stale") {
    throw new BadRequest("state must be fresh or stale");
  }
  return {
    ...(prefix !== undefined && { prefix }),
    ...(match !== undefined && { match }),
    ...(tag !== undefined && { tags: tag }),
    ...(type !== undefined && { type }),
    ...(state !== undefined && { state }),
    ...(cursor !== undefined && { cursor }),
    types: true,
  };
}

/** At most sixty points, each the average of its minutes. */
function downsampled(history: readonly FleetMinute[], now: number, seconds: number): readonly unknown[] {
  const width = Math.max(60_000, (seconds * 1_000) / POINTS);
  const first = Math.floor((now - seconds * 1_000) / width);
  const groups = new Map<number, FleetMinute[]>();
  for (const minute of history) {
    const at = Math.floor(Date.parse(minute.at) / width);
    const group = groups.get(at) ?? [];
    groups.set(at, group);
    group.push(minute);
  }
  const points: unknown[] = [];
  for (let at = first; at <= Math.floor(now / width); at++) {
    const group = groups.get(at) ?? [];
    const sum = (name: keyof FleetMinute): number =>
      group.reduce((total, each) => total + Number(each[name]), 0);
    const operations = sum("totalOperations");
    const weighted = (name: "p50" | "p95" | "p99"): number =>
      operations === 0
        ? 0
        : group.reduce((total, each) => total + each[name] * each.totalOperations, 0) / operations;
    // The current minute is not over yet.
    const lasted = Math.max(1, Math.min(width, now - at * width) / 1_000);
    points.push({
      at: at * width,
      seconds: lasted,
      hits: sum("totalHits"),
      misses: sum("totalMisses"),
      storeHits: sum("totalStoreHits"),
      stale: sum("totalStaleServed"),
      loads: sum("totalLoads"),
      errors: sum("totalErrors"),
      operations,
      p50: weighted("p50"),
      p95: weighted("p95"),
      p99: weighted("p99"),
    });
  }
  return points;
}

/** The fields in force; what differs from the default comes from the code. */
function configured(config: CheckedOptions["inside"]["root"]["config"]): readonly Setting[] {
  const defaults = resolveConfig({});
  return FIELD_NAMES.map((field) => ({
    name: wireName(field),
    value: settingText(field, config[field]),
    origin: JSON.stringify(config[field]) === JSON.stringify(defaults[field]) ? "default" : "code",
  }));
}

/** Never a secret: only what kind of thing is set. */
export function settingText(field: FieldName, value: unknown): string {
  if (value === undefined) return "-";
  if (field === "password" || field === "encryption") return value === false ? "off" : "set";
  if (field === "kvUrl") return redactUrl(String(value));
  if (field === "backend" || field === "metrics") return Object(value).constructor?.name ?? "set";
  return typeof value === "string" ? value : JSON.stringify(value);
}
