// The options of the codec: their types, defaults and checks.
import { ConfigError, describeArrival } from "../core/errors.ts";
import { nodeZlib } from "../core/lazy-builtin.ts";

export type CompressionAlgorithm = "brotli" | "gzip" | "zstd";

export interface CompressionOptions {
  /** Payloads smaller than this are not compressed. Default: 1024. */
  readonly thresholdBytes?: number;
  /** `zstd` needs a Node whose node:zlib has it (22.15, 23.8 or later). Default: `brotli`. */
  readonly algorithm?: CompressionAlgorithm;
}

export interface CodecLimits {
  /** The most bytes one value may take, before compression and after decompression. Default: 67108864 (64 MiB). */
  readonly maxBytes: number;
  /** How deep objects, arrays, maps, sets and error causes may be nested, 1 to 1000. Default: 512. */
  readonly maxDepth: number;
}

export interface CodecOptions {
  /**
   * `json`: a value that JSON represents exactly is stored as JSON text, for people and tools that read the store; any
   * other value is still stored as MessagePack. Default: `msgpack`.
   */
  readonly serialization?: "msgpack" | "json";
  /** Default: false. */
  readonly compression?: false | CompressionOptions;
  readonly limits?: Partial<CodecLimits>;
  /** Small payloads may be parts of larger memory: `PayloadSlice`. Default: false. */
  readonly slices?: boolean;
}

export interface CodecSettings {
  readonly json: boolean;
  readonly compression: Required<CompressionOptions> | undefined;
  readonly limits: CodecLimits;
  readonly slices: boolean;
}

export const ALGORITHMS: readonly CompressionAlgorithm[] = ["brotli", "gzip", "zstd"];
const DEFAULT_THRESHOLD_BYTES = 1024;
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;
const DEFAULT_MAX_DEPTH = 512;
/** Deeper recursion could exhaust the caller's stack. */
const GREATEST_MAX_DEPTH = 1000;
/** The largest Buffer that every supported Node can allocate. */
const GREATEST_MAX_BYTES = 2 ** 31 - 1;

/** Throws ConfigError for an unknown key or a value out of range. */
export function settingsOf(options: CodecOptions): CodecSettings {
  const given = fieldsOf("codec options", options, ["serialization", "compression", "limits", "slices"]);
  const serialization = oneOf("serialization", given.serialization ?? "msgpack", ["msgpack", "json"]);
  const limits = fieldsOf("limits", given.limits ?? {}, ["maxBytes", "maxDepth"]);
  return {
    json: serialization === "json",
    compression: compressionOf(given.compression ?? false),
    slices: given.slices === true,
    limits: {
      maxBytes: integerIn("limits.maxBytes", limits.maxBytes ?? DEFAULT_MAX_BYTES, 1, GREATEST_MAX_BYTES),
      maxDepth: integerIn("limits.maxDepth", limits.maxDepth ?? DEFAULT_MAX_DEPTH, 1, GREATEST_MAX_DEPTH),
    },
  };
}

function compressionOf(given: unknown): Required<CompressionOptions> | undefined {
  if (given === false) return undefined;
  const fields = fieldsOf("compression", given, ["thresholdBytes", "algorithm"], "false or an object");
  const algorithm = oneOf("compression.algorithm", fields.algorithm ?? "brotli", ALGORITHMS);
  if (!isAvailable(algorithm)) {
    throw new ConfigError(
      "CONFIG_INVALID",
      `compression.algorithm ${algorithm} is not in the node:zlib of Node ${process.versions.node}.`,
      { hint: "Use brotli or gzip, or run Node 22.15, 23.8 or later." },
    );
  }
  const threshold = fields.thresholdBytes ?? DEFAULT_THRESHOLD_BYTES;
  return {
    algorithm,
    thresholdBytes: integerIn("compression.thresholdBytes", threshold, 0, GREATEST_MAX_BYTES),
  };
}

/** Whether this Node has it. */
export function isAvailable(algorithm: CompressionAlgorithm): boolean {
  if (algorithm !== "zstd") return true;
  const zlib: object = nodeZlib();
  return "zstdCompressSync" in zlib && "zstdDecompressSync" in zlib;
}

function fieldsOf<Name extends string>(
  what: string,
  given: unknown,
  names: readonly Name[],
  expected = "an object",
): Partial<Record<Name, unknown>> {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw invalid(what, expected, given);
  for (const name of Object.keys(given)) {
    if (!(names as readonly string[]).includes(name)) {
      throw new ConfigError(
        "CONFIG_UNKNOWN_FIELD",
        `${what} has no field "${name}"; the fields are ${names.join(", ")}.`,
      );
    }
  }
  return given as Partial<Record<Name, unknown>>;
}

function oneOf<Choice extends string>(what: string, given: unknown, choices: readonly Choice[]): Choice {
  const found = choices.find((choice) => choice === given);
  if (found === undefined) throw invalid(what, `one of ${choices.join(", ")}`, given);
  return found;
}

function integerIn(what: string, given: unknown, least: number, most: number): number {
  if (!Number.isInteger(given) || (given as number) < least || (given as number) > most) {
    throw invalid(what, `a whole number from ${least} to ${most}`, given);
  }
  return given as number;
}

function invalid(what: string, expected: string, given: unknown): ConfigError {
  return new ConfigError("CONFIG_INVALID", `${what} must be ${expected}; got ${describeArrival(given)}.`);
}
