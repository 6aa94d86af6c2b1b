// A cache opened for one command. It records nothing in the store, so that reading changes nothing.

import { CacheScope, openScope } from "../cache/lifecycle.ts";
import { configFromEnv, type Environment, fieldFromText } from "../config/env.ts";
import { type LayeredConfig, layerConfig } from "../config/resolve.ts";
import type { CacheConfig, ResolvedConfig } from "../config/types.ts";
import { configFromYaml } from "../config/yaml.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Namespace, Store } from "../core/namespace.ts";
import { redactUrl } from "../core/redact.ts";
import { XCache } from "../xcache.ts";
import type { CommandContext, GlobalFlags } from "./command-spec.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { unlessStopped } from "./interrupt.ts";

function configFromFlags({ kvUrl, prefix, timeout }: GlobalFlags): CacheConfig {
  return {
    ...(kvUrl === undefined ? {} : { kvUrl: fieldFromText("kvUrl", kvUrl, "--kv-url") }),
    ...(prefix === undefined ? {} : { keyPrefix: fieldFromText("keyPrefix", prefix, "--prefix") }),
    ...(timeout === undefined ? {} : { operationTimeout: timeout, connectTimeout: timeout }),
  };
}

/** Flags override the environment, which overrides the file. Throws ConfigError naming the flag, variable or line. */
function readSettings(flags: GlobalFlags, env: Environment): LayeredConfig {
  return layerConfig({
    flags: configFromFlags(flags),
    env: configFromEnv(env),
    file: flags.config === undefined ? {} : configFromYaml(flags.config),
  });
}

export interface Session {
  readonly cache: XCache;
  /** The namespace behind `cache`, for what the cache object does not expose. */
  readonly namespace: Namespace;
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: LayeredConfig;
  /** Without credentials. */
  readonly address: string;
}

/** Opens the store without connecting to it. Throws ConfigError. */
export function openSession({ flags, env }: CommandContext): Session {
  const settings = readSettings(flags, env);
  const { root, namespace: base } = openScope(withoutSideEffects(settings.config), systemClock);
  const namespace = (flags.namespace ?? []).reduce((parent, name) => parent.child(name), base);
  const cache = new XCache(new CacheScope(root, namespace) as CacheConfig);
  // Commands report failures themselves: no process warnings.
  cache.on("error", () => {});
  return {
    cache,
    namespace,
    store: root.store,
    clock: root.clock,
    settings,
    address: redactUrl(settings.config.kvUrl),
  };
}

/**
 * The user's settings, except those that would leave traces in the store or not help a single command. A circuit
 * breaker would hide the store's real errors, which are what the user wants to see.
 */
function withoutSideEffects(config: ResolvedConfig): CacheConfig {
  const { backend: _, metrics: __, username, password, circuitBreaker, ...rest } = config;
  const neverOpen = { ...circuitBreaker, failureThreshold: Number.MAX_SAFE_INTEGER };
  const login = {
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
  };
  return { ...rest, ...login, circuitBreaker: neverOpen, enableMetrics: false, nearCache: false };
}

export interface SessionOptions {
  /** The command handles Ctrl-C itself, to report how far it got; otherwise Ctrl-C ends it at once. */
  readonly reportsProgress?: boolean;
}

/** Connects, runs `work`, and always disconnects. */
export function withSession(
  context: CommandContext,
  work: (session: Session) => Promise<ExitCode>,
  { reportsProgress = false }: SessionOptions = {},
): Promise<ExitCode> {
  return withOpenSession(context, async (session) => {
    const isThere = await unlessStopped(
      session.cache.connect().then(() => true),
      context.interrupt.signal,
    );
    if (isThere === undefined) return EXIT.interrupted;
    if (reportsProgress) return work(session);
    return (await unlessStopped(work(session), context.interrupt.signal)) ?? EXIT.interrupted;
  });
}

/** Like `withSession` without connecting first, for commands that report a failed connection themselves. */
export async function withOpenSession(
  context: CommandContext,
  work: (session: Session) => Promise<ExitCode>,
): Promise<ExitCode> {
  const session = openSession(context);
  try {
    return await work(session);
  } finally {
    await unlessStopped(
      session.cache.disconnect().catch(() => {}),
      context.interrupt.signal,
    );
  }
}
