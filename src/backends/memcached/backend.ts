// The store on memcached: one server, or several on a consistent-hash ring.
import { type MemcachedAddress, nameOf } from "../../core/address/address.ts";
import { parseStoreAddress } from "../../core/address/store-url.ts";
import type { Backend, BackendHost, Capabilities, RecordTaker, ScanItem } from "../../core/backend.ts";
import { checkBackendOptions } from "../../core/backend-options.ts";
import { ConfigError, UnsupportedError } from "../../core/errors.ts";
import { LazyModule } from "../../core/lazy-module.ts";
import { redactUrl } from "../../core/redact.ts";
import { RemoteBackend } from "../wire/remote-backend.ts";
import type { Servers } from "./servers.ts";

export interface MemcachedOptions {
  /** memcached://host:port, or several hosts separated by commas. */
  readonly kvUrl: string;
}

type ServersModule = typeof import("./servers.ts");

const serversModule = new LazyModule(() => import("./servers.ts"));

/**
 * One memcached server, or several on a hash ring. Also opened by `memcached://`.
 *
 * @example
 * ```ts
 * const cache = new XCache({ kvUrl: "memcached://cache-1:11211,cache-2:11211" });
 * ```
 */
export class MemcachedBackend extends RemoteBackend<ServersModule, Servers> implements Backend {
  readonly name = "memcached";
  readonly capabilities: Capabilities;
  protected readonly identity: { readonly address: string; readonly kind: string };
  readonly #address: MemcachedAddress;

  /** Throws ConfigError for a URL that is not one of memcached. */
  constructor(options: MemcachedOptions) {
    super(serversModule);
    checkBackendOptions("MemcachedBackend", options, ["kvUrl"]);
    const { kvUrl } = options;
    const address = parseStoreAddress(kvUrl);
    if (address.kind !== "memcached") {
      throw new ConfigError(
        "CONFIG_INVALID",
        `kvUrl must be an address of memcached, got ${redactUrl(kvUrl)}`,
        { hint: "Write memcached://host:11211, with commas between several hosts." },
      );
    }
    if (new Set(address.hosts.map(nameOf)).size < address.hosts.length) {
      throw new ConfigError("CONFIG_INVALID", `kvUrl names a host twice, got ${redactUrl(kvUrl)}`, {
        hint: "Name every server once; upper and lower case are the same.",
      });
    }
    this.#address = address;
    this.identity = { address: redactUrl(kvUrl), kind: address.kind };
    // On one server all stamps share a connection; with several, each stamp may be on another server.
    const ordered = address.hosts.length === 1;
    this.capabilities = {
      shared: true,
      scan: false,
      ttlResolutionMs: 1_000,
      ordered,
      fenced: false,
      readsAtEndOfTurn: true,
      takesPayloadSlices: true,
    };
  }

  protected openClient(code: ServersModule, host: BackendHost): Servers {
    return new code.Servers(this.#address, host);
  }

  readStampedThen(key: string, stamps: readonly string[], taker: RecordTaker): void {
    const servers = this.client.ready;
    if (servers !== undefined) servers.commands.readStampedThen(key, stamps, taker);
    else
      this.client.later(
        ({ commands }) => commands.readStampedThen(key, stamps, taker),
        (error) => taker.fail(error),
      );
  }

  // biome-ignore lint/correctness/useYield: there is nothing to yield.
  async *scan(): AsyncIterable<readonly ScanItem[]> {
    throw new UnsupportedError("memcached cannot list keys", {
      operation: "keys",
      hint: "Give entries a tag and use invalidateTags(), or use Redis, Valkey or a file:// store.",
    });
  }

  makesRoom(): boolean {
    return this.client.opened?.makesRoom() === true;
  }
}
