// prisma over its adapters for node-postgres, mariadb and libsql: wraps a client, extends one, or wraps an adapter.
import type { SessionAdapter, SessionTracker } from "../core/db-session.ts";
import { ConfigError } from "../core/errors.ts";
import { requirePeerVersion } from "../core/peer-package.ts";
import { pgSessions } from "./pg/sessions.ts";
import {
  type ClientParts,
  type Engine,
  isLibsqlAdapter,
  isMariadbAdapter,
  isPgAdapter,
  isPrismaClient,
  type SqlDriverAdapter,
  type SqlDriverAdapterFactory,
} from "./prisma/library.ts";
import { hasMethod } from "./tracking/argument-checks.ts";
import { perSession } from "./tracking/proxy.ts";
import { trackerOf, type WatchOptions } from "./tracking/watch-options.ts";

export type { WatchOptions } from "./tracking/watch-options.ts";

const watchedClient = perSession(wrapClient);

/** `cachedDependency` recognises these sessions on its own. */
export const prismaSessions: SessionAdapter<object> = {
  name: "prisma",
  recognises: (session): session is object => isPrismaClient(session),
  wrap: (session, tracker) => watchedClient(session as ClientParts, tracker),
};

/** For `client.$extends`: reads of the named tables are cached, commits invalidate them. */
export function prismaCache(options: WatchOptions): <Client extends object>(client: Client) => Client {
  const tracker = trackerOf("prismaCache", options);
  return <Client extends object>(client: Client): Client => {
    if (hasMethod(client, "$extends") && isPrismaClient(client))
      return watchedClient(client, tracker) as unknown as Client;
    throw wrongAdapter("prismaCache");
  };
}

/** For `new PrismaClient({ adapter })`: an adapter for node-postgres, mariadb or libsql whose statements are watched. */
export function cachedAdapter<Factory extends SqlDriverAdapterFactory>(
  factory: Factory,
  options: WatchOptions,
): Factory {
  const tracker = trackerOf("cachedAdapter", options);
  return watchedFactory(factory, tracker, "cachedAdapter");
}

function watchedFactory<Factory extends SqlDriverAdapterFactory>(
  factory: Factory,
  tracker: SessionTracker,
  caller: string,
): Factory {
  // Before 6.6 the client was given an adapter instead of a factory.
  if (!hasMethod(factory, "connect")) throw wrongAdapter(caller);
  const connect: SqlDriverAdapterFactory["connect"] = async () => {
    const adapter = (await factory.connect()) as SqlDriverAdapter;
    if (isLibsqlAdapter(adapter)) {
      const { watchedLibsql } = await import("./prisma/sqlite-adapter.ts");
      return watchedLibsql(adapter, tracker);
    }
    if (isMariadbAdapter(adapter)) {
      requirePeerVersion("@prisma/adapter-mariadb", "A cached session of prisma");
      const { watchedMariadb } = await import("./prisma/mariadb-adapter.ts");
      return watchedMariadb(adapter, tracker);
    }
    if (!isPgAdapter(adapter)) throw wrongAdapter(caller);
    // The adapter sends everything through its pool.
    return Object.assign(adapter, { client: pgSessions.wrap(adapter.client, tracker) });
  };
  return Object.create(factory, { connect: { value: connect } }) as Factory;
}

/** Derives a client the way `$extends` does, with an engine whose adapter is watched. */
function wrapClient(client: ClientParts, tracker: SessionTracker): ClientParts {
  const original = client._originalClient;
  requirePeerVersion("@prisma/client", "A cached session of prisma", { found: original._clientVersion });
  const { _engine: engine, _engineConfig: config, _requestHandler: handler } = original;
  const adapter = watchedFactory(config.adapter!, tracker, "cachedDependency");
  const engineConfig = { ...config, adapter };
  const watchedEngine: Engine = sameClass(engine, engineConfig);
  stopTogether(engine, watchedEngine);
  const base = Object.create(original) as ClientParts;
  Object.defineProperties(base, {
    _originalClient: { value: base },
    _engine: { value: watchedEngine },
    _engineConfig: { value: engineConfig },
    _requestHandler: { value: sameClass(handler, base, handler.logEmitter) },
    _extensions: { value: client._extensions },
  });
  const extended = base.$extends({}) as ClientParts;
  // Extended clients have no `$on`; both clients share the emitter.
  const listen = typeof client.$on === "function" ? client.$on.bind(client) : undefined;
  return new Proxy(Object.create(extended) as ClientParts, {
    get: (_, property) => (property === "$on" ? listen : Reflect.get(extended, property, extended)),
  });
}

/** Disconnecting the application's client stops both engines. */
function stopTogether(engine: Engine, watched: Engine): void {
  const stop = engine.stop.bind(engine);
  const both = async (): Promise<void> => {
    await Promise.all([stop(), watched.stop()]);
  };
  Object.defineProperty(engine, "stop", { value: both, configurable: true, writable: true });
}

/** A new object of the same class. */
function sameClass<T extends object>(original: T, ...parts: readonly unknown[]): T {
  return new (original.constructor as new (...parts: readonly unknown[]) => T)(...parts);
}

function wrongAdapter(caller: string): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `${caller}(): expected prisma 6.6 or later over @prisma/adapter-pg, @prisma/adapter-mariadb or @prisma/adapter-libsql, got another adapter or none.`,
    { hint: "new PrismaClient({ adapter: new PrismaPg(pool) })" },
  );
}
