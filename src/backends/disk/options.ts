// Options of the disk backend, from an object or a file:// address.
import { parseStoreAddress } from "../../core/address/store-url.ts";
import { checkBackendOptions } from "../../core/backend-options.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { nodePath } from "../../core/lazy-builtin.ts";

/**
 * What an acknowledged change survives. `process`: the crash of any process; the store is empty after a reboot of the
 * machine. `disk`: also a power cut, since every commit waits for the disk.
 */
export type Durability = "process" | "disk";

interface Settings {
  /** Approximate bound of the store in bytes; the oldest entries are evicted. At least 1,048,576. Default: 1 GiB. */
  readonly maxBytes?: number;
  /** What an acknowledged change survives; must be the same in every process. Default: `process`. */
  readonly durability?: Durability;
}

export interface DiskFolderOptions extends Settings {
  /** Absolute path of a dedicated folder on a local disk; created if it does not exist. */
  readonly directory: string;
}

export interface DiskUrlOptions {
  /** As in `file:///var/cache/app?max_bytes=268435456&durability=disk`. */
  readonly kvUrl: string;
}

export type DiskOptions = DiskFolderOptions | DiskUrlOptions;

export type ResolvedOptions = Required<DiskFolderOptions>;

const DEFAULT_MAX_BYTES = 1024 ** 3;
const LEAST_MAX_BYTES = 1024 ** 2;
/** Four times as much is mapped: a quarter of the address space of a process on every 64-bit system. */
const MOST_MAX_BYTES = 2 ** 43;
const NAMES = ["directory", "maxBytes", "durability"];

/** Throws ConfigError. */
export function resolveOptions(options: unknown): ResolvedOptions {
  checkBackendOptions("DiskBackend", options, ["kvUrl", ...NAMES]);
  const given = "kvUrl" in options ? fromUrl(options) : options;
  const { directory, maxBytes = DEFAULT_MAX_BYTES, durability = "process" } = given;
  if (typeof directory !== "string" || !nodePath().isAbsolute(directory) || directory.includes("\0")) {
    throw invalid(`directory must be an absolute path, got ${describeArrival(directory)}`);
  }
  if (
    !Number.isInteger(maxBytes) ||
    (maxBytes as number) < LEAST_MAX_BYTES ||
    (maxBytes as number) > MOST_MAX_BYTES
  ) {
    throw invalid(
      `maxBytes (max_bytes in a store address) must be a whole number of bytes from ${LEAST_MAX_BYTES} to ${MOST_MAX_BYTES}, got ${describeArrival(maxBytes)}`,
    );
  }
  if (durability !== "process" && durability !== "disk") {
    throw invalid(`durability must be "process" or "disk", got ${describeArrival(durability)}`);
  }
  return { directory, maxBytes: maxBytes as number, durability };
}

function fromUrl({ kvUrl, ...rest }: Record<string, unknown>): Record<string, unknown> {
  const others = Object.keys(rest);
  if (others.length > 0) throw invalid(`DiskBackend takes kvUrl alone, got ${others.join(", ")} as well`);
  const address = parseStoreAddress(kvUrl);
  if (address.kind !== "file")
    throw invalid(`kvUrl must be a file:// address, got a ${address.kind} address`);
  return { directory: address.path, ...address.options };
}

function invalid(message: string): ConfigError {
  return new ConfigError("CONFIG_INVALID", message);
}
