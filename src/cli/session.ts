// A cache opened for one command: it counts nothing in the store, so that looking changes nothing.
import { openPlace, Place } from "../cache-root.ts";
import type { LayeredConfig } from "../config/origin.ts";
import type { CacheConfig, ResolvedConfig } from "../config/types.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { redactUrl } from "../core/redact.ts";
import type { Space, Store } from "../core/space.ts";
import { XCache } from "../xcache.ts";
import type { CommandContext } from "./context.ts";
import type { ExitCode } from "./exit-code.ts";
import { readSettings } from "./settings.ts";

export interface Session {
  readonly cache: XCache;
  /** The same part of the store, for what the cache object does not tell. */
  readonly space: Space;
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

/** The user's settings, but for what would leave traces of a command or be of no use to it. */
function quietly(config: ResolvedConfig): CacheConfig {
  const { backend: _, metrics: __, ...rest } = config;
  return { ...rest, enableMetrics: false, nearCache: false };
}

/** Connects, works, and disconnects whatever happens. */
export async function withSession(
  context: CommandContext,
  work: (session: Session) => Promise<ExitCode>,
): Promise<ExitCode> {
  const session = openSession(context);
  try {
    await session.cache.connect();
    return await work(session);
  } finally {
    await session.cache.disconnect().catch(() => {});
  }
}
