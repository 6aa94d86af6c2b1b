// One process of the consistency test: executes its steps on a cache of its own and reports what happened.
import { setTimeout as pause } from "node:timers/promises";

/**
 * @typedef {import("./history.ts").HistoryRecord} HistoryRecord
 * @typedef {import("./history.ts").Call} Call
 * @typedef {import("./history.ts").Failure} Failure
 * @typedef {import("./history.ts").Value} Value
 * @typedef {import("./plan.ts").Step} Step
 * @typedef {import("./plan.ts").ReadStep} ReadStep
 * @typedef {import("./plan.ts").ChangeStep} ChangeStep
 * @typedef {import("../../src/xcache.ts").XCache} XCache
 * @typedef {import("../../src/core/options.ts").LoadContext<Value>} Context
 * @typedef {Extract<ReadStep, { do: "getOrSet" }>} LoadStep
 * @typedef {import("./round.ts").Order} Order
 * @typedef {Extract<Order, { do: "prepare" }>} Preparation
 */

const TTL_S = 120;
/** How often the store is probed; the keys of the probes are spread over its servers. */
const PROBE_MS = 60;
const PROBES = 6;
const LAG_LOOK_MS = 20;
const LAG_MS = 25;
const REPORT_MS = 250;
/** A call that takes this long, far longer than any other, is considered hung. */
const PATIENCE_MS = 15_000;

/** The error that a load throws, with the id of the load. */
class LoadFailure extends Error {
  /** @param {string} load */
  constructor(load) {
    super(`load ${load} fails as planned`);
    this.load = load;
  }
}

class Worker {
  /**
   * @param {Preparation} order
   * @param {XCache} cache
   */
  constructor(order, cache) {
    this.order = order;
    this.cache = cache;
    this.origin = process.hrtime.bigint();
    this.count = 0;
    this.isProbing = true;
    /** @type {HistoryRecord[]} */
    this.records = [];
    /** Calls in progress. @type {Map<string, Omit<Call, "end">>} */
    this.open = new Map();
    /** Loads in progress; one may outlast the calls that waited for it. @type {Set<Promise<unknown>>} */
    this.loading = new Set();
    /** @type {Map<string, LoadFailure>} */
    this.failures = new Map();
    cache.on("error", ({ error }) => {
      if (error instanceof LoadFailure) return;
      this.tell({ kind: "trouble", worker: order.worker, at: this.now(), code: codeOf(error) });
    });
  }

  /** Milliseconds of the clock that all processes of a machine share. */
  now() {
    return Number(process.hrtime.bigint() - this.origin) / 1e6;
  }

  /** @param {HistoryRecord} record */
  tell(record) {
    this.records.push(record);
  }

  report() {
    if (this.records.length > 0) process.send?.({ records: this.records.splice(0) });
  }

  newId() {
    return `${this.order.worker}.${++this.count}`;
  }

  /** @param {bigint} origin */
  async run(origin) {
    this.origin = origin;
    this.records = [];
    const timers = [
      setInterval(() => this.report(), REPORT_MS),
      setInterval(() => this.watchLag(), LAG_LOOK_MS),
    ];
    this.seenAt = this.now();
    const probing = this.probe();
    /** @type {Promise<unknown>[]} */
    const running = [];
    for (const step of this.order.steps) {
      const wait = step.at - this.now();
      if (wait > 1) await pause(wait);
      running.push(this.step(step));
    }
    const patience = new AbortController();
    await Promise.race([
      Promise.all([...running, probing]).then(() => Promise.allSettled(this.loading)),
      pause(PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => {}),
    ]);
    patience.abort();
    for (const call of this.open.values())
      this.tell({ ...call, end: this.now(), failure: { code: "NEVER ENDED" } });
    for (const timer of timers) clearInterval(timer);
    this.report();
  }

  watchLag() {
    const now = this.now();
    const start = this.seenAt ?? now;
    this.seenAt = now;
    if (now - start > LAG_LOOK_MS + LAG_MS)
      this.tell({ kind: "lag", worker: this.order.worker, start, end: now });
  }

  async probe() {
    for (let at = 0; this.isProbing; at++) {
      const keys = [`probe:${this.order.worker}:${at % PROBES}`];
      const asked = this.call({ operation: "delete", keys, probe: true }, () => this.cache.delete(keys));
      await Promise.all([asked, pause(PROBE_MS)]);
    }
  }

  /** @param {Step} step */
  async step(step) {
    if (step.do === "get" || step.do === "getMany" || step.do === "getOrSet") await this.read(step);
    else {
      await this.change(step);
      if (step.afterwards !== undefined) await this.read(step.afterwards);
    }
  }

  /** @param {ChangeStep} step */
  change(step) {
    const { cache } = this;
    switch (step.do) {
      case "set": {
        const { key, tags } = step;
        return this.call({ operation: "set", keys: [key], tags }, (id) =>
          cache.set(key, { id, key }, { ttl: TTL_S, tags }),
        );
      }
      case "delete":
        return this.call({ operation: "delete", keys: step.keys }, () => cache.delete(step.keys));
      case "invalidateTags":
        return this.call({ operation: "invalidateTags", tags: step.tags }, () =>
          cache.invalidateTags(step.tags),
        );
      case "invalidatePattern":
        return this.call({ operation: "invalidatePattern", pattern: step.pattern }, () =>
          cache.invalidatePattern(step.pattern),
        );
      case "clear":
        return this.call({ operation: "clear" }, () => cache.clear());
    }
  }

  /** @param {ReadStep} step */
  async read(step) {
    const { cache } = this;
    if (step.do === "get") {
      await this.call({ operation: "get", keys: [step.key] }, () => cache.get(step.key));
    } else if (step.do === "getMany") {
      await this.call({ operation: "getMany", keys: step.keys }, () => cache.getMany(step.keys));
    } else {
      await Promise.all(Array.from({ length: step.callers }, () => this.getOrSet(step)));
    }
  }

  /** @param {LoadStep} step */
  getOrSet(step) {
    const { key, tags, hardTimeout, staleIfError } = step;
    const options = {
      ttl: TTL_S,
      tags,
      ...(hardTimeout === undefined ? {} : { hardTimeout }),
      ...(staleIfError === undefined ? {} : { staleIfError }),
    };
    const facts = hardTimeout === undefined ? {} : { hardTimeoutMs: hardTimeout * 1_000 };
    return this.call({ operation: "getOrSet", keys: [key], ...facts }, (call) => {
      const { lateTags, ttl, outcome } = step.load;
      const isPlain = lateTags.length === 0 && ttl === undefined && outcome !== "skip";
      // The library treats a load without a parameter as one that cannot name tags.
      const load = isPlain
        ? () => this.follow(this.load(step, call))
        : (/** @type {Context} */ context) => this.follow(this.load(step, call, context));
      return this.cache.getOrSet(key, load, options);
    });
  }

  /**
   * @template T
   * @param {Promise<T>} load
   */
  follow(load) {
    this.loading.add(load);
    const over = () => this.loading.delete(load);
    load.then(over, over);
    return load;
  }

  /**
   * @param {LoadStep} step
   * @param {string} call
   * @param {Context} [context]
   * @returns {Promise<Value>}
   */
  async load({ key, tags, load }, call, context) {
    const id = this.newId();
    const start = this.now();
    if (load.beforeMs > 0) await pause(load.beforeMs);
    const at = this.now();
    if (load.afterMs > 0) await pause(load.afterMs);
    if (load.lateTags.length > 0) context?.setTags(load.lateTags);
    if (load.ttl !== undefined) context?.setTtl(load.ttl);
    if (load.outcome === "skip") context?.skip();
    this.tell({
      kind: "load",
      id,
      worker: this.order.worker,
      call,
      key,
      tags: [...tags, ...load.lateTags],
      hasLateTags: load.lateTags.length > 0,
      ttlMs: (load.ttl ?? TTL_S) * 1_000,
      start,
      at,
      end: this.now(),
      outcome: load.outcome,
    });
    if (load.outcome !== "error") return { id, key };
    const failure = new LoadFailure(id);
    this.failures.set(id, failure);
    throw failure;
  }

  /**
   * Makes a call and records it, however it ends.
   * @param {Omit<Call, "kind" | "id" | "worker" | "start" | "end">} facts
   * @param {(id: string) => Promise<unknown>} make
   */
  async call(facts, make) {
    const id = this.newId();
    const start = this.now();
    const common = { kind: /** @type {const} */ ("call"), id, worker: this.order.worker, ...facts, start };
    this.open.set(id, common);
    try {
      const result = await make(id);
      const end = this.now();
      const values = valuesIn(result);
      this.tell({ ...common, end, ...(values.length > 0 ? { values } : {}) });
    } catch (error) {
      this.tell({ ...common, end: this.now(), failure: this.failureOf(error) });
    } finally {
      this.open.delete(id);
    }
  }

  /**
   * @param {unknown} error
   * @returns {Failure}
   */
  failureOf(error) {
    if (!(error instanceof LoadFailure)) return { code: codeOf(error) };
    return { code: "LOAD", load: error.load, same: this.failures.get(error.load) === error };
  }
}

/**
 * @param {unknown} result
 * @returns {Value[]}
 */
function valuesIn(result) {
  if (result instanceof Map) return [...result.values()];
  return typeof result === "object" && result !== null ? [/** @type {Value} */ (result)] : [];
}

/** @param {unknown} error */
function codeOf(error) {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : `${error.name}: ${error.message}`;
}

/** @type {Worker | undefined} */
let worker;

process.on("message", async (/** @type {Order} */ order) => {
  if (order.do === "prepare") {
    const { XCache } = await import(order.library);
    const cache = new XCache(order.config);
    await cache.connect();
    await cache.get("warm");
    worker = new Worker(order, cache);
    process.send?.({ ready: true });
  } else if (order.do === "go") {
    await worker?.run(BigInt(order.origin));
    process.send?.({ done: true });
  } else if (order.do === "calm") {
    if (worker !== undefined) worker.isProbing = false;
  } else if (order.do === "report") {
    worker?.report();
    process.send?.({ reported: true });
  } else {
    await worker?.cache.disconnect();
    process.exit();
  }
});
// Without its parent, a process cannot report to anyone.
process.on("disconnect", () => process.exit(1));
