// A cache opened for one command: it counts nothing in the store, so that looking changes nothing.
import { openPlace, Place } from "../cache/lifecycle.ts";
import type { LayeredConfig } from "../config/origin.ts";
import type { CacheConfig, ResolvedConfig } from "../config/types.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import type { Namespace, Store } from "../core/namespace.ts";
import { redactUrl } from "../core/redact.ts";
import { XCache } from "../xcache.ts";
import type { CommandContext } from "./context.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { unlessStopped } from "./interrupt.ts";
import { readSettings } from "./settings.ts";

export interface Session {
  readonly cache: XCache;
  /** The same part of the store, for what the cache object does not tell. */
  readonly space: Namespace;
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: LayeredConfig;
  /** Without credentials. */
  readonly address: string;
}

/** Opens the store without connecting to it. Throws ConfigError. */
export function openSession({ flags, env }: CommandContext): Session {
  const settings = readSettings(flags, env);
  const { root, space: base } = openPlace(quietly(settings.config), systemClock);
  const space = (flags.namespace ?? []).reduce((parent, name) => parent.child(name), base);
  return {
    cache: new XCache(new Place(root, space) as CacheConfig),
    space,
    store: root.store,
    clock: root.clock,
    settings,
    address: redactUrl(settings.config.kvUrl),
  };
}

/**
 * The user's settings, but for what would leave traces of a command or be of no use to it. A breaker would only hide how
 * the store fares, from somebody who wants to see that.
 */
function quietly(config: ResolvedConfig): CacheConfig {
  const { backend: _, metrics: __, circuitBreaker, ...rest } = config;
  const neverOpen = { ...circuitBreaker, failureThreshold: Number.MAX_SAFE_INTEGER };
  return { ...rest, circuitBreaker: neverOpen, enableMetrics: false, nearCache: false };
}

export interface SessionOptions {
  /** Ctrl-C is left to the work, once it has begun; else it ends at once. */
  readonly tellsHowFar?: boolean;
}

/** Connects, works, and disconnects whatever happens. */
export function withSession(
  context: CommandContext,
  work: (session: Session) => Promise<ExitCode>,
  { tellsHowFar = false }: SessionOptions = {},
): Promise<ExitCode> {
  return withOpenSession(context, async (session) => {
    const isThere = await unlessStopped(
      session.cache.connect().then(() => true),
      context.interrupt.signal,
    );
    if (isThere === undefined) return EXIT.interrupted;
    if (tellsHowFar) return work(session);
    return (await unlessStopped(work(session), context.interrupt.signal)) ?? EXIT.interrupted;
  });
}

/** As `withSession`, where failing to connect is part of the answer. */
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
