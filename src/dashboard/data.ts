// What the dashboard's page asks for, as JSON. Nothing here is counted in the figures it shows.

import { adviceFrom, takeSample, uncountedHealth, uncountedStats } from "../advice/advise.ts";
import type { EntrySample } from "../advice/entry-sample.ts";
import { alertPatterns } from "../alerts/patterns.ts";
import { type EntryInfo, type EntryPage, type EntryScanOptions, entryInfo } from "../cache/entry-pages.ts";
import { type Clock, pause, systemClock } from "../core/clock.ts";
import { CodecError } from "../core/errors.ts";
import type { FleetActivity } from "../core/stats.ts";
import { toSnake } from "../core/wire.ts";
import { fuzzySearch } from "../search/fuzzy.ts";
import { VERSION } from "../version.ts";
import { type Changed, Changes } from "./audit.ts";
import type { CheckedOptions } from "./checked-options.ts";
import { downsampled, POINTS } from "./curve.ts";
import { type Body, keyIn, limitIn, messageOf, rangeOf, scanOptions, textIn } from "./request-body.ts";
import { ScanTurns } from "./scan-turns.ts";
import { addressOf, configured, type Setting } from "./settings.ts";
import { FIRST, MORE, shownPreview, wholeValue } from "./shown-value.ts";

/** What the command line adds to the page. */
export interface DashboardExtras {
  readonly settings?: readonly Setting[];
  /** Shown above every screen. */
  readonly note?: string;
  /** Checks of the set-up. */
  readonly doctor?: () => Promise<readonly unknown[]>;
}

export interface Allowed {
  readonly writes: boolean;
  readonly values: boolean;
}

/** Also the longest that a live stream is silent. */
const LIVE_EVERY_MS = 2_000;
/** How long a sample of the entries is used before another one is taken. */
const SAMPLE_MS = 30_000;
const MOST_SIMILAR = 50;
/** Two typos in a text of six characters. */
const LEAST_SIMILAR = 66;

export class DashboardData {
  readonly #options: CheckedOptions;
  readonly #extras: DashboardExtras;
  readonly #clock: Clock;
  readonly #turns: ScanTurns;
  readonly #changes = new Changes();
  #sample: { readonly at: number; readonly sample: EntrySample | undefined } | undefined;

  /** `clock` is for tests. */
  constructor(options: CheckedOptions, extras: DashboardExtras, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#turns = new ScanTurns(clock);
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
      note: this.#extras.note,
      prefix: root.config.keyPrefix,
      address: addressOf(root.config),
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
      changes: this.#changes.recent,
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

  /**
   * The overview again and again, until the reader goes away, and at once after a change. A store that fails is said, and
   * tried again; while it keeps the page waiting, `waiting` says for how many seconds.
   */
  async *live(body: Body, allowed: Allowed, signal: AbortSignal): AsyncIterable<unknown> {
    while (!signal.aborted) {
      // A change that is made while the overview is read counts as well.
      const { next } = this.#changes;
      const reading = this.overview(body, allowed).then(
        (overview) => ({ overview }),
        (error: unknown) => ({ failed: messageOf(error) }),
      );
      yield* this.#whileWaiting(reading, signal);
      yield await reading;
      await pause(this.#clock, LIVE_EVERY_MS, signal, next);
    }
  }

  async *#whileWaiting(work: Promise<unknown>, signal: AbortSignal): AsyncIterable<unknown> {
    const over = new AbortController();
    const done = (): void => over.abort();
    void work.then(done);
    for (let waited = LIVE_EVERY_MS; ; waited += LIVE_EVERY_MS) {
      await pause(this.#clock, LIVE_EVERY_MS, signal, over.signal);
      if (signal.aborted || over.signal.aborted) return;
      yield { waiting: waited / 1_000 };
    }
  }

  /**
   * Entries as they are found, with how many were looked at and where to continue. It ends with its reader. An exact key
   * is looked up besides. `similar`: the keys that resemble a text, best first.
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
    if (similar === undefined || similar === "") yield* this.#scan(options, limit, signal);
    else yield* this.#similar(similar, options, Math.min(limit, MOST_SIMILAR), signal);
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
  #paced(options: EntryScanOptions, signal: AbortSignal): AsyncIterable<EntryPage> {
    return this.#turns.pages(this.#options.cache.scan({ ...options, signal }), signal);
  }

  async *#scan(options: EntryScanOptions, limit: number, signal: AbortSignal): AsyncIterable<unknown> {
    let shown = 0;
    let scanned = 0;
    let cursor: string | undefined;
    for await (const page of this.#paced(options, signal)) {
      scanned += page.scanned;
      shown += page.entries.length;
      cursor = page.cursor;
      yield { entries: page.entries.map(row), scanned, cursor };
      if (shown >= limit) break;
      cursor = undefined;
    }
    yield { done: cursor === undefined, scanned, ...(cursor !== undefined && { cursor }) };
  }

  /** Every entry; undefined if the reader has gone. */
  async #wholeSample(
    total: number,
    activity: FleetActivity,
    signal: AbortSignal,
  ): Promise<EntrySample | undefined> {
    const { cache, inside } = this.#options;
    const paced = { scan: () => this.#paced({}, signal), healthCheck: () => cache.healthCheck() };
    const sample = await takeSample(paced, inside, total, activity, Number.POSITIVE_INFINITY);
    return signal.aborted ? undefined : sample;
  }

  async entry(body: Body, { values }: Allowed): Promise<unknown> {
    const key = keyIn(body);
    const extent = body.more === true ? MORE : FIRST;
    const found = await this.#options.inside.namespace().preview(key, values ? extent.bytes : 0);
    if (found === undefined) return { missing: true };
    const shown = values ? shownPreview(found, this.#options.redact, extent) : undefined;
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
      value: Object.entries(alerts.deliveries())
        .map(([name, count]) => `${count} ${toSnake(name).replaceAll("_", " ")}`)
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

  /** The sample is then out of date, and every open page shows the change. */
  changed(change: Changed): void {
    this.#sample = undefined;
    this.#changes.add(change);
  }
}

/** JSON has no Infinity. */
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

function row(entry: EntryInfo): object {
  return { ...entry, ttl: finite(entry.ttl), staleFor: finite(entry.staleFor) };
}
