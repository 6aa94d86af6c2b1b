// Options of a semantic cache: their types, defaults and checks.
import { requireClock, requireOptions } from "../core/arguments.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { type Duration, OR_TEXT, toSeconds } from "../core/duration.ts";
import { ConfigError, describeArrival } from "../core/errors.ts";
import { requireNamespace } from "../core/keys.ts";
import type { XCache } from "../xcache.ts";
import { DISTANCES, type DistanceName, METRICS } from "./distance.ts";
import { type Embedder, MOST_DIMENSIONS } from "./embedding.ts";
import { lexicalEmbedder } from "./lexical-embedder.ts";

export interface SemanticCacheOptions {
  /** Where answers and their vectors are stored. */
  readonly cache: XCache;
  /** The namespace of `cache` to store them in, as for `cache.namespace(name)`. */
  readonly namespace: string;
  /** The least score at which the answer to another text is used. `metric` defines the score. */
  readonly threshold: number;
  /** Turns a text into a vector. Default: `lexicalEmbedder()`, which compares spelling, not meaning. */
  readonly embed?: Embedder;
  /** How vectors are compared. Default: cosine. */
  readonly metric?: DistanceName;
  /** The length of the vectors. Default: that of the embedder, else of its first vector. */
  readonly dimensions?: number;
  /** Names the model: vectors stored under another name are not compared. Default: that of the embedder, else "default". */
  readonly model?: string;
  /** How long to wait for the embedder, and for the index while it is being built. Default: 5 seconds. */
  readonly timeout?: Duration;
  /** Up to this many vectors search is exact; beyond, it is approximate if `usearch` is installed. Default: 20,000. */
  readonly exactUpTo?: number;
  /** The most vectors in memory; further answers are found by exact text only. Default: 100,000. */
  readonly maxVectors?: number;
  /** Default: the system clock. */
  readonly clock?: Clock;
}

const NAMES: readonly (keyof SemanticCacheOptions)[] = [
  "cache",
  "namespace",
  "threshold",
  "embed",
  "metric",
  "dimensions",
  "model",
  "timeout",
  "exactUpTo",
  "maxVectors",
  "clock",
];

const DEFAULT_TIMEOUT = 5;
const DEFAULT_EXACT_UP_TO = 20_000;
const DEFAULT_MAX_VECTORS = 100_000;

export interface Settings {
  readonly namespace: XCache;
  readonly threshold: number;
  readonly embed: Embedder;
  readonly metric: DistanceName;
  readonly dimensions: number | undefined;
  readonly model: string;
  readonly timeoutMs: number;
  readonly exactUpTo: number;
  readonly maxVectors: number;
  readonly clock: Clock;
}

export function settingsOf(options: SemanticCacheOptions): Settings {
  requireOptions(options, NAMES);
  const { cache, namespace, embed = lexicalEmbedder(), metric = "cosine" } = options;
  const { clock = systemClock } = options;
  const timeout = toSeconds(options.timeout ?? DEFAULT_TIMEOUT);
  const { exactUpTo = DEFAULT_EXACT_UP_TO, maxVectors = DEFAULT_MAX_VECTORS } = options;
  requireThat(isCache(cache), "cache must be an XCache", cache);
  requireNamespace(namespace);
  requireClock(clock);
  requireThat(typeof embed === "function", "embed must be a function", embed);
  requireThat(METRICS.includes(metric), `metric must be one of ${METRICS.join(", ")}`, metric);
  requireThat(isSeconds(timeout), `timeout must be a number of seconds above 0, ${OR_TEXT}`, options.timeout);
  requireThat(isCount(exactUpTo) || exactUpTo === 0, "exactUpTo must be a whole number", exactUpTo);
  requireThat(isCount(maxVectors), "maxVectors must be a whole number above 0", maxVectors);
  const model = options.model ?? embed.model ?? "default";
  requireThat(typeof model === "string", "model must be a string", model);
  const dimensions = options.dimensions ?? embed.dimensions;
  requireThat(
    dimensions === undefined || (isCount(dimensions) && dimensions <= MOST_DIMENSIONS),
    `dimensions must be a whole number from 1 to ${MOST_DIMENSIONS}`,
    dimensions,
  );
  return {
    namespace: cache.namespace(namespace),
    threshold: requireThreshold(options.threshold, metric),
    embed,
    metric,
    dimensions,
    model,
    timeoutMs: timeout * 1000,
    exactUpTo,
    maxVectors,
    clock,
  };
}

export function requireThreshold(threshold: unknown, metric: DistanceName): number {
  const isNumber = typeof threshold === "number" && Number.isFinite(threshold);
  if (!DISTANCES[metric].isBounded) {
    requireThat(isNumber, "threshold must be a finite number", threshold);
  } else {
    requireThat(
      isNumber && (threshold as number) >= 0 && (threshold as number) <= 1,
      "threshold must be a number from 0 to 1",
      threshold,
    );
  }
  return threshold as number;
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) > 0;

const isSeconds = (value: unknown): value is number => typeof value === "number" && value > 0;

const METHODS = ["namespace", "get", "getMany", "getOrSet", "set", "delete", "clear", "keys", "on"] as const;

function isCache(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return METHODS.every((name) => typeof (value as XCache)[name] === "function");
}

export function requireThat(holds: boolean, expected: string, arrived: unknown): asserts holds {
  if (!holds) throw new ConfigError("ARGUMENT_INVALID", `${expected}, got ${describeArrival(arrived)}`);
}
