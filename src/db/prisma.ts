// Sessions of prisma over its adapters for node-postgres and libsql, as a client, an extension or an adapter.

import type { SessionAdapter, SessionTracker } from "../core/db-session.ts";
import { ConfigError } from "../core/errors.ts";
import { pgSessions } from "./pg.ts";
import {
  type ClientParts,
  type Engine,
  isLibsqlAdapter,
  isPgAdapter,
  isPrismaClient,
  type SqlDriverAdapterFactory,
} from "./prisma/library.ts";
import { watchedLibsql } from "./prisma/sqlite-adapter.ts";
import { hasMethod } from "./tracking/handed-over.ts";
import { perSession } from "./tracking/per-session.ts";
import { trackerOf, type WatchOptions } from "./tracking/watch-options.ts";

export type { WatchOptions } from "./tracking/watch-options.ts";

const wrapped = perSession(wrapClient);

/** For `cachedDependency`, which finds it by itself. */
export const prismaSessions: SessionAdapter<object> = {
  name: "prisma",
  recognises: (session): session is object => isPrismaClient(session),
  wrap: (session, tracker) => wrapped(session as ClientParts, tracker),
};

/** For `client.$extends`: the same client, with reads of the named tables cached and commits invalidating. */
export function prismaCache(options: WatchOptions): <Client extends object>(client: Client) => Client {
  const tracker = trackerOf("prismaCache", options);
  return <Client extends object>(client: Client): Client => {
    if (hasMethod(client, "$extends") && isPrismaClient(client))
      return wrapped(client, tracker) as unknown as Client;
    throw wrongAdapter("prismaCache");
  };
}

/** For `new PrismaClient({ adapter })`: an adapter for node-postgres or libsql whose statements are watched. */
export function cachedAdapter<Factory extends SqlDriverAdapterFactory>(
  factory: Factory,
  options: WatchOptions,
): Factory {
  const tracker = trackerOf("cachedAdapter", options);
  if (!hasMethod(factory, "connect")) throw wrongAdapter("cachedAdapter");
  return watchedFactory(factory, tracker, "cachedAdapter");
}

function watchedFactory<Factory extends SqlDriverAdapterFactory>(
  factory: Factory,
  tracker: SessionTracker,
  caller: string,
): Factory {
  const connect: SqlDriverAdapterFactory["connect"] = async () => {
    const adapter = await factory.connect();
    if (isLibsqlAdapter(adapter)) return watchedLibsql(adapter, tracker);
    if (!isPgAdapter(adapter)) throw wrongAdapter(caller);
    // Everything that the adapter sends goes through its pool.
    return Object.assign(adapter, { client: pgSessions.wrap(adapter.client, tracker) });
  };
  return Object.create(factory, { connect: { value: connect } }) as Factory;
}

/** As `$extends` makes a client of another one, with an engine whose adapter is watched. */
function wrapClient(client: ClientParts, tracker: SessionTracker): ClientParts {
  const original = client._originalClient;
  const { _engine: engine, _engineConfig: config, _requestHandler: handler } = original;
  const adapter = watchedFactory(config.adapter!, tracker, "cachedDependency");
  const engineConfig = { ...config, adapter };
  const watchedEngine: Engine = madeLike(engine, engineConfig);
  stopTogether(engine, watchedEngine);
  const base = Object.create(original) as ClientParts;
  Object.defineProperties(base, {
    _originalClient: { value: base },
    _engine: { value: watchedEngine },
    _engineConfig: { value: engineConfig },
    _requestHandler: { value: madeLike(handler, base, handler.logEmitter) },
    _extensions: { value: client._extensions },
  });
  const extended = base.$extends({}) as ClientParts;
  // Extended clients have none; the emitter is the same.
  const listen = typeof client.$on === "function" ? client.$on.bind(client) : undefined;
  return new Proxy(Object.create(extended) as ClientParts, {
    get: (_, property) => (property === "$on" ? listen : Reflect.get(extended, property, extended)),
  });
}

/** Whoever ends the client that the application holds ends both. */
function stopTogether(engine: Engine, watched: Engine): void {
  const stop = engine.stop.bind(engine);
  const both = async (): Promise<void> => {
    await Promise.all([stop(), watched.stop()]);
  };
  Object.defineProperty(engine, "stop", { value: both, configurable: true, writable: true });
}

function madeLike<T extends object>(one: T, ...parts: readonly unknown[]): T {
  return new (one.constructor as new (...parts: readonly unknown[]) => T)(...parts);
}

function wrongAdapter(caller: string): ConfigError {
  return new ConfigError(
    "ARGUMENT_INVALID",
    `${caller}(): expected prisma over @prisma/adapter-pg or @prisma/adapter-libsql, got another adapter or none.`,
    { hint: "new PrismaClient({ adapter: new PrismaPg(pool) })" },
  );
}
