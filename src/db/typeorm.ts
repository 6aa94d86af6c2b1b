// typeorm over PostgreSQL, MySQL or SQLite: wraps a data source, its manager or a query runner; and its `cache` option.
import { requireOptions } from "../core/arguments.ts";
import type { SessionAdapter, SessionTracker } from "../core/db-session.ts";
import { requireCache } from "./tracking/argument-checks.ts";
import { perSession } from "./tracking/proxy.ts";
import { TypeormCache, type TypeormCacheOptions } from "./typeorm/cache.ts";
import { watchedMembers, watchedRunner } from "./typeorm/driver.ts";
import {
  type DataSource,
  driverOf,
  type EntityManager,
  isDataSource,
  isManager,
  isMysql,
  isPostgres,
  isRunner,
  ownerOf,
  type QueryResultCache,
  type QueryRunner,
} from "./typeorm/library.ts";

export type { TypeormCacheOptions } from "./typeorm/cache.ts";

/** The objects of typeorm that own a connection or hand one out. */
export type TypeormSession = DataSource | EntityManager | QueryRunner;

/** `cachedDependency` recognises these sessions on its own. */
export const typeormSessions: SessionAdapter<TypeormSession> = {
  name: "typeorm",
  recognises: (session): session is TypeormSession =>
    isDataSource(session) || isManager(session) || isRunner(session),
  dialect(session) {
    const driver = driverOf(isDataSource(session) ? session : ownerOf(session)!);
    return isPostgres(driver) ? "postgres" : isMysql(driver) ? "mysql" : "sqlite";
  },
  wrap(session, tracker) {
    if (isDataSource(session)) return watchedSource(session, tracker);
    if (!isManager(session)) return watchedOwner(session, tracker);
    return session.queryRunner === undefined
      ? watchedSource(ownerOf(session)!, tracker).manager
      : watchedOwner(session.queryRunner, tracker).manager;
  },
};

function watchedOwner(runner: QueryRunner, tracker: SessionTracker): QueryRunner {
  return withManager(watchedRunner(runner, tracker), watchedSource(ownerOf(runner)!, tracker));
}

/**
 * For `cache.provider` of a data source: queries with `.cache()` are cached until a commit changes their tables. Throws
 * ConfigError ARGUMENT_INVALID or CONFIG_UNKNOWN_FIELD.
 */
export function typeormCache(options: TypeormCacheOptions): (source: DataSource) => QueryResultCache {
  requireOptions(options, ["cache"]);
  requireCache("typeormCache", options.cache);
  return (source) => new TypeormCache(source, options);
}

const watchedSource = perSession(watchSource);

/** These change the data source, so they must run on the original. */
const OWN_METHODS = ["initialize", "destroy", "setOptions", "buildMetadatas"] as const;

/** Inherits every member of the data source, with a driver whose connections are watched. */
function watchSource(source: DataSource, tracker: SessionTracker): DataSource {
  const driver = driverOf(source);
  const watched = Object.create(source) as DataSource;
  const watchedDriver: object = Object.create(driver, {
    ...watchedMembers(driver, tracker),
    dataSource: { value: watched },
    connection: { value: watched },
  });
  const members: Record<string, unknown> = { driver: watchedDriver };
  for (const name of OWN_METHODS) {
    const method = (source as unknown as Record<string, (...args: unknown[]) => unknown>)[name];
    members[name] = async (...args: unknown[]) => {
      const result = await method?.apply(source, args);
      return result === source ? watched : result;
    };
  }
  for (const name of ["relationLoader", "relationIdLoader"] as const) {
    members[name] = new (source[name].constructor as new (owner: DataSource) => object)(watched);
  }
  for (const [name, value] of Object.entries(members)) Object.defineProperty(watched, name, { value });
  Object.defineProperty(watched, "manager", { value: watched.createEntityManager() });
  return watched;
}

/** Gives the watched runner its own manager, so that entities are read and written through it. */
function withManager(runner: QueryRunner, source: DataSource): QueryRunner {
  const { manager } = runner;
  const own = source.createEntityManager(runner);
  // createEntityManager has assigned it to the application's runner: undo that.
  Object.assign(runner, { manager });
  return new Proxy(runner, {
    get: (target, property, receiver) =>
      property === "manager" ? own : Reflect.get(target, property, receiver),
  });
}
