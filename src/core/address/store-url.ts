// Parses every form of `kv_url`. No message contains credentials.
import { ConfigError, describeArrival } from "../errors.ts";
import { nodeUrl, onFirstUse } from "../lazy-builtin.ts";
import { suggestName } from "../suggest-name.ts";
import type {
  ClusterOptions,
  FileOptions,
  LinkOptions,
  MemoryOptions,
  NatOptions,
  SentinelOptions,
  ServerOptions,
  StoreAddress,
  TlsOptions,
} from "./address.ts";
import {
  decode,
  hostMap,
  oneOf,
  readUrlOptions,
  seconds,
  secretText,
  someText,
  type UrlOptions,
  wholeNumber,
  word,
  yesNo,
} from "./url-options.ts";
import { type Parts, readDatabase, readLogin, readNetwork, splitAddress } from "./url-parts.ts";

const TLS_OPTIONS: UrlOptions<TlsOptions> = {
  tlsCaFile: someText,
  tlsCertFile: someText,
  tlsKeyFile: someText,
  tlsServerName: someText,
  tlsVerify: yesNo,
};
const LINK_OPTIONS: UrlOptions<LinkOptions> = {
  clientName: word,
  keepAlive: seconds(0),
  reconnectPause: seconds(0.001),
  maxReconnectPause: seconds(0.001),
};
const NAT_OPTIONS: UrlOptions<NatOptions> = { natMap: hostMap };
const SERVER_OPTIONS: UrlOptions<ServerOptions> = { ...TLS_OPTIONS, ...LINK_OPTIONS };
const CLUSTER_OPTIONS: UrlOptions<ClusterOptions> = { ...SERVER_OPTIONS, ...NAT_OPTIONS };
interface DatabaseOption {
  readonly db?: number;
}
const DATABASE_OPTION: UrlOptions<DatabaseOption> = { db: wholeNumber(0) };

function refuseTlsOptions(options: object, tls: boolean, { scheme, fail }: Parts): void {
  if (tls || !Object.keys(options).some((name) => name in TLS_OPTIONS)) return;
  fail(`the tls_ options need ${scheme.replace(/^(redis|valkey)/, "$1s")}://`);
}

/** The defaults are those of backends/wire/reconnecting.ts. */
function checkPauses({ reconnectPause = 0.02, maxReconnectPause = 0.5 }: LinkOptions, { fail }: Parts): void {
  if (reconnectPause > maxReconnectPause) fail("reconnect_pause must not exceed max_reconnect_pause");
}

const standalone =
  (tls: boolean) =>
  (parts: Parts): StoreAddress => {
    const network = readNetwork(parts, 6379);
    if (network.hosts.length > 1) {
      return parts.fail(`several hosts need ${parts.scheme}+cluster:// or ${parts.scheme}+sentinel://`);
    }
    const { db, ...options } = readUrlOptions<ServerOptions & DatabaseOption>(
      { ...SERVER_OPTIONS, ...DATABASE_OPTION },
      parts,
    );
    refuseTlsOptions(options, tls, parts);
    checkPauses(options, parts);
    const database = readDatabase(parts.path.slice(1), db, parts.fail);
    return { kind: "standalone", ...network, tls, database, options };
  };

const cluster =
  (tls: boolean) =>
  (parts: Parts): StoreAddress => {
    const network = readNetwork(parts, 6379);
    if (!["", "/", "/0"].includes(parts.path)) return parts.fail("a cluster has database 0 only");
    const options = readUrlOptions(CLUSTER_OPTIONS, parts);
    refuseTlsOptions(options, tls, parts);
    checkPauses(options, parts);
    return { kind: "cluster", ...network, tls, options };
  };

const SENTINEL_OPTIONS: UrlOptions<SentinelOptions> = {
  ...CLUSTER_OPTIONS,
  sentinelUsername: someText,
  sentinelPassword: secretText,
  sentinelTls: yesNo,
  sentinelTlsCaFile: someText,
  sentinelTlsCertFile: someText,
  sentinelTlsKeyFile: someText,
  sentinelTlsServerName: someText,
  sentinelTlsVerify: yesNo,
};

function refuseSentinelTlsOptions(options: SentinelOptions, tls: boolean, { fail }: Parts): void {
  const isGiven = Object.keys(options).some(
    (name) => name !== "sentinelTls" && name.startsWith("sentinelTls"),
  );
  if (isGiven && !(options.sentinelTls ?? tls)) fail("the sentinel_tls_ options need sentinel_tls=true");
}

const sentinel =
  (tls: boolean) =>
  (parts: Parts): StoreAddress => {
    const network = readNetwork(parts, 26_379);
    const [, encodedName = "", databasePath = "", ...tooMuch] = parts.path.split("/");
    const name = decode(encodedName);
    if (!name || tooMuch.length > 0) {
      return parts.fail(
        `the path must be the master's name, as in ${parts.scheme}://host1,host2/name or /name/database`,
      );
    }
    const { db, ...options } = readUrlOptions<SentinelOptions & DatabaseOption>(
      { ...SENTINEL_OPTIONS, ...DATABASE_OPTION },
      parts,
    );
    refuseTlsOptions(options, tls, parts);
    refuseSentinelTlsOptions(options, tls, parts);
    checkPauses(options, parts);
    const database = readDatabase(databasePath, db, parts.fail);
    return { kind: "sentinel", ...network, tls, name, database, options };
  };

function socket(parts: Parts): StoreAddress {
  const { login, hosts } = readLogin(parts);
  const path = decode(parts.path);
  if (hosts !== "" || !path || path.endsWith("/") || path.includes("\0")) {
    return parts.fail("a socket address has an absolute path and no host, as in unix:///run/redis.sock");
  }
  const { db, ...options } = readUrlOptions<LinkOptions & DatabaseOption>(
    { ...LINK_OPTIONS, ...DATABASE_OPTION },
    parts,
  );
  checkPauses(options, parts);
  return { kind: "socket", ...login, path, database: db ?? 0, options };
}

function memcached(parts: Parts): StoreAddress {
  const { hosts, username, password } = readNetwork(parts, 11_211);
  if (username !== undefined || password !== undefined)
    return parts.fail("memcached takes no user name or password");
  if (parts.path !== "" && parts.path !== "/")
    return parts.fail("memcached has no databases, so the path must be empty");
  readUrlOptions({}, parts);
  return { kind: "memcached", hosts };
}

const MEMORY_OPTIONS: UrlOptions<MemoryOptions> = {
  maxEntries: wholeNumber(1),
  maxBytes: wholeNumber(1),
  values: oneOf("copy", "shared", "frozen"),
};

function memory(parts: Parts): StoreAddress {
  if (parts.authority !== "" || !["", "/"].includes(parts.path)) {
    return parts.fail("the memory store has no host or path, as in memory://?max_entries=1000");
  }
  return { kind: "memory", options: readUrlOptions(MEMORY_OPTIONS, parts) };
}

const FILE_OPTIONS: UrlOptions<FileOptions> = {
  maxBytes: wholeNumber(1),
  durability: oneOf("process", "disk"),
};

function directoryOf({ path }: Parts): string | undefined {
  try {
    const directory = nodeUrl().fileURLToPath(`file://${path}`);
    return directory.includes("\0") ? undefined : directory;
  } catch {
    return undefined;
  }
}

function file(parts: Parts): StoreAddress {
  const directory = directoryOf(parts);
  if (!["", "localhost"].includes(parts.authority) || parts.path.length < 2 || directory === undefined) {
    return parts.fail("a directory must be an absolute path, as in file:///var/cache/app");
  }
  return { kind: "file", path: directory, options: readUrlOptions(FILE_OPTIONS, parts) };
}

const kvSchemes = () =>
  (["redis", "rediss", "valkey", "valkeys"] as const).flatMap((scheme) => {
    const tls = scheme.endsWith("ss") || scheme === "valkeys";
    return [
      [scheme, standalone(tls)],
      [`${scheme}+cluster`, cluster(tls)],
      [`${scheme}+sentinel`, sentinel(tls)],
    ] as const;
  });

const schemes = onFirstUse(
  (): ReadonlyMap<string, (parts: Parts) => StoreAddress> =>
    new Map([...kvSchemes(), ["unix", socket], ["memcached", memcached], ["memory", memory], ["file", file]]),
);

/**
 * Parses a store address. Throws ConfigError that names the field as `label`, says what is wrong and shows the address
 * without its credentials.
 */
export function parseStoreAddress(url: unknown, label = "kvUrl"): StoreAddress {
  const parts = splitAddress(url, label);
  const read = schemes().get(parts.scheme);
  if (read !== undefined) return read(parts);
  const advice = suggestName(parts.scheme, [...schemes().keys()]);
  throw new ConfigError(
    "CONFIG_INVALID",
    `${label}: unknown scheme ${describeArrival(parts.scheme)}: ${advice}`,
  );
}
