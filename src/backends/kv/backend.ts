// The store on Redis or Valkey: one server, the master that sentinels name, or a cluster.

import type { PasswordFunction, StoreAddress } from "../../core/address/address.ts";
import { parseStoreAddress } from "../../core/address/store-url.ts";
import type {
  Backend,
  BackendHost,
  Capabilities,
  Failed,
  PushChannel,
  RecordHead,
  Restriction,
  ScanItem,
  ScanOptions,
  TakenMany,
} from "../../core/backend.ts";
import { checkBackendOptions } from "../../core/backend-options.ts";
import { ConfigError, describeArrival } from "../../core/errors.ts";
import { LazyModule } from "../../core/lazy-module.ts";
import { redactUrl } from "../../core/redact.ts";
import { RemoteBackend } from "../wire/remote-backend.ts";
import type { Changed, KvClient } from "./client.ts";
import type { KvAddress, SeveralServers } from "./open-router.ts";
import type { LoginOptions } from "./server/login.ts";
import { PushTrust } from "./server/push-trust.ts";

export interface KvOptions {
  /** redis://, rediss://, unix://, redis+cluster://, redis+sentinel:// or a valkey form of them. */
  readonly kvUrl: string;
  /** Default: the user in `kvUrl`, or the server's default user. */
  readonly username?: string;
  /** The password, or a function that is called for every connection and returns it. Default: the one in `kvUrl`. */
  readonly password?: string | PasswordFunction;
}

const OPTION_NAMES: readonly (keyof KvOptions)[] = ["kvUrl", "username", "password"];

interface ClientCode extends Pick<typeof import("./client.ts"), "KvClient"> {
  readonly several?: SeveralServers;
}

const codeOfOneServer = new LazyModule<ClientCode>(() => import("./client.ts"));

const codeOfSeveralServers = new LazyModule<ClientCode>(async () => {
  const [{ KvClient }, { openServers }] = await Promise.all([
    import("./client.ts"),
    import("./several-servers.ts"),
  ]);
  return { KvClient, several: { openServers } };
});

/**
 * Redis or Valkey: a single server, a master behind sentinels, or a cluster. Also opened by `redis://`, `valkey://` and their variants.
 *
 * @example
 * ```ts
 * const backend = new KvBackend({ kvUrl: "rediss://cache.internal:6380/0", password: () => currentToken() });
 * const cache = new XCache({ backend, nearCache: true });
 * ```
 */
export class KvBackend extends RemoteBackend<ClientCode, KvClient> implements Backend {
  readonly name = "kv";
  readonly capabilities: Capabilities;
  readonly push: PushChannel;
  protected readonly identity: { readonly address: string; readonly kind: string };
  readonly #address: KvAddress;
  readonly #login: LoginOptions;
  readonly #trust: PushTrust;
  readonly #listeners = new Set<Changed>();

  /** Throws ConfigError for an address that is not one of Redis or Valkey. */
  constructor(options: KvOptions) {
    checkBackendOptions("KvBackend", options, OPTION_NAMES);
    const { kvUrl } = options;
    const address = parseStoreAddress(kvUrl);
    if (!isKvAddress(address)) {
      throw new ConfigError(
        "CONFIG_INVALID",
        `kvUrl must be an address of Redis or Valkey, got ${redactUrl(kvUrl)}`,
      );
    }
    const namesSeveral = address.kind === "sentinel" || address.kind === "cluster";
    super(namesSeveral ? codeOfSeveralServers : codeOfOneServer);
    this.#address = address;
    this.#login = checkedLogin({
      username: options.username === undefined ? address.username : options.username,
      password: options.password === undefined ? address.password : options.password,
    });
    this.identity = { address: redactUrl(kvUrl), kind: address.kind };
    // On one server all stamps share a connection; in a cluster each may be on another server.
    const ordered = address.kind !== "cluster";
    this.capabilities = {
      shared: true,
      scan: true,
      ttlResolutionMs: 1,
      replicated: true,
      ordered,
      takesPayloadSlices: true,
    };
    const trust = new PushTrust(
      () => this.client.opened?.trustedUntil() ?? 0,
      () => this.host?.clock.now() ?? 0,
    );
    this.#trust = trust;
    this.push = {
      epoch: (key) => this.client.opened?.epoch(key, trust.holds()) ?? 0,
      isTrusted: (now) => (now === undefined ? trust.holds() : trust.holdsAt(now)),
      onChange: (listener) => {
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
      },
    };
  }

  protected openClient(code: ClientCode, host: BackendHost): KvClient {
    return new code.KvClient(this.#address, this.#login, host, this.#changed, code.several);
  }

  readManyThen(keys: readonly string[], isWatched: boolean, done: TakenMany, failed: Failed): void {
    const client = this.client.ready;
    if (client !== undefined) client.commands.readManyThen(keys, isWatched, done, failed);
    else this.client.later(({ commands }) => commands.readManyThen(keys, isWatched, done, failed), failed);
  }

  readHead(key: string, most: number): Promise<RecordHead | undefined> {
    return this.client.use(({ commands }) => commands.readHead(key, most));
  }

  removeMany(keys: readonly string[]): Promise<void> {
    return this.client.use(({ commands }) => commands.removeMany(keys));
  }

  async *scan(prefix: string, { signal, ...position }: ScanOptions = {}): AsyncIterable<readonly ScanItem[]> {
    const client = await this.client.whenReady();
    yield* client.scan(prefix, signal, position);
  }

  restrictions(key: string): Promise<readonly Restriction[]> {
    return this.client.use((client) => client.restrictions(key));
  }

  makesRoom(): boolean {
    return this.client.opened?.makesRoom() ?? true;
  }

  readonly #changed: Changed = (key) => {
    if (key === undefined) this.#trust.revoke();
    for (const listener of this.#listeners) listener(key);
  };
}

/** No message contains the password. */
function checkedLogin({ username, password }: LoginOptions): LoginOptions {
  const invalid = (what: string): ConfigError => new ConfigError("CONFIG_INVALID", what);
  if (username !== undefined && (typeof username !== "string" || username === ""))
    throw invalid(`username must be a non-empty string, got ${describeArrival(username)}`);
  if (password !== undefined && typeof password !== "function") {
    if (typeof password !== "string")
      throw invalid(`password must be a string or a function, got a ${typeof password}`);
    if (password === "") throw invalid("password must not be empty");
  }
  if (username !== undefined && password === undefined)
    throw invalid("a user name needs a password, as in user:password@host, or given as `password`");
  return { username, password };
}

const KV_KINDS: readonly string[] = [
  "standalone",
  "socket",
  "sentinel",
  "cluster",
] satisfies KvAddress["kind"][];

function isKvAddress(address: StoreAddress): address is KvAddress {
  return KV_KINDS.includes(address.kind);
}
