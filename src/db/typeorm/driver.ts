// Watches the connections that typeorm's driver gives to its query runners.
import type { SessionTracker } from "../../core/db-session.ts";
import { ConfigError } from "../../core/errors.ts";
import { watchConnection, wrapConnection } from "../mysql2/connection.ts";
import { leasingMysqlPool } from "../mysql2/leased-connection.ts";
import { isMysqlPool, type MysqlConnection, type MysqlPool } from "../mysql2/library.ts";
import { watchClient, wrapClient } from "../pg/client.ts";
import { leasingPool } from "../pg/leased-client.ts";
import type { PgClient, PgPool } from "../pg/library.ts";
import { proxyOf } from "../tracking/proxy.ts";
import {
  isMysql,
  isPostgres,
  type MysqlCluster,
  type OpenRunner,
  type QueryRunner,
  type TypeormDriver,
} from "./library.ts";
import { watchedSqliteRunner } from "./sqlite-runner.ts";

/** Overrides for members of the driver. They are getters, because the driver connects after it is constructed. */
export function watchedMembers(driver: TypeormDriver, tracker: SessionTracker): PropertyDescriptorMap {
  if (isPostgres(driver)) {
    const watched = onceEach((pool: PgPool) => leasingPool(pool, tracker));
    return {
      master: { get: () => driver.master && watched(driver.master), configurable: true },
      slaves: { get: () => driver.slaves?.map(watched), configurable: true },
    };
  }
  if (isMysql(driver)) {
    const watched = onceEach((pool: MysqlPool) => leasing(pool, tracker));
    const cluster = onceEach((found: MysqlCluster) => watchedCluster(found, tracker));
    return {
      pool: { get: () => driver.pool && watched(driver.pool), configurable: true },
      poolCluster: { get: () => driver.poolCluster && cluster(driver.poolCluster), configurable: true },
    };
  }
  const { createQueryRunner } = driver;
  const value = (mode: string): QueryRunner =>
    watchedSqliteRunner(createQueryRunner.call(driver, mode), tracker);
  return { createQueryRunner: { value, configurable: true, writable: true } };
}

/** Calls `make` once for each object. */
function onceEach<T extends object>(make: (object: T) => T): (object: T) => T {
  const made = new WeakMap<T, T>();
  return (object) => {
    const found = made.get(object) ?? make(object);
    made.set(object, found);
    return found;
  };
}

function leasing(pool: MysqlPool, tracker: SessionTracker): MysqlPool {
  if (isMysqlPool(pool)) return leasingMysqlPool(pool, tracker);
  throw new ConfigError(
    "ARGUMENT_INVALID",
    "typeorm over MySQL: expected a pool of mysql2, got another library's.",
    {
      hint: "Install mysql2, or pass it as `driver`.",
    },
  );
}

/** Replicas may be behind: what is read from one is not cached. */
function watchedCluster(cluster: MysqlCluster, tracker: SessionTracker): MysqlCluster {
  return proxyOf(cluster, {
    getConnection: (name: string, callback: Parameters<MysqlCluster["getConnection"]>[1]) =>
      cluster.getConnection(name, (error, connection) => {
        const isMaster = connection !== undefined && name === "MASTER";
        callback(error, isMaster ? wrapConnection(watchConnection(connection, tracker)) : connection);
      }),
  });
}

/** Watches the pools of a driver that has just connected, for all of its users. */
export function watchInPlace(driver: TypeormDriver, tracker: SessionTracker): void {
  if (!isPostgres(driver) && !isMysql(driver)) {
    Object.defineProperties(driver, watchedMembers(driver, tracker));
    return;
  }
  if (driver.master !== undefined) driver.master = leasingPool(driver.master, tracker);
  if (driver.slaves !== undefined) driver.slaves = driver.slaves.map((pool) => leasingPool(pool, tracker));
  if (driver.pool !== undefined) driver.pool = leasing(driver.pool, tracker);
  if (driver.poolCluster !== undefined) driver.poolCluster = watchedCluster(driver.poolCluster, tracker);
}

/** A runner that the application created and will release itself. */
export function watchedRunner(runner: QueryRunner, tracker: SessionTracker): QueryRunner {
  const open = runner as unknown as OpenRunner;
  const { driver } = open;
  if (!isPostgres(driver) && !isMysql(driver)) return watchedSqliteRunner(runner, tracker);
  const wrapper = onceEach<PgClient | MysqlConnection>((connection) =>
    isPostgres(driver)
      ? wrapClient(watchClient(connection as PgClient, tracker))
      : wrapConnection(watchConnection(connection as MysqlConnection, tracker)),
  );
  const connect = async () => wrapper(await open.connect());
  return new Proxy(runner, {
    get: (target, property, receiver) =>
      property === "connect" ? connect : Reflect.get(target, property, receiver),
  });
}
