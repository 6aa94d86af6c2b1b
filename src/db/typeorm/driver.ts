// The driver of typeorm with the connections of its query runners watched.
import type { SessionTracker } from "../../core/db-session.ts";
import { watchClient, wrapClient } from "../pg/client.ts";
import { leasingPool } from "../pg/leasing-pool.ts";
import type { PgClient, PgPool } from "../pg/library.ts";
import { isPostgres, type OpenRunner, type QueryRunner, type TypeormDriver } from "./library.ts";
import { watchedSqliteRunner } from "./sqlite-runner.ts";

/** Members in place of the driver's own; they look at the driver each time, which connects later than it is made. */
export function watchedMembers(driver: TypeormDriver, tracker: SessionTracker): PropertyDescriptorMap {
  if (!isPostgres(driver)) {
    const { createQueryRunner } = driver;
    const value = (mode: string): QueryRunner =>
      watchedSqliteRunner(createQueryRunner.call(driver, mode), tracker);
    return { createQueryRunner: { value, configurable: true, writable: true } };
  }
  const pools = new WeakMap<PgPool, PgPool>();
  const watched = (pool: PgPool): PgPool => {
    const found = pools.get(pool) ?? leasingPool(pool, tracker);
    pools.set(pool, found);
    return found;
  };
  return {
    master: { get: () => driver.master && watched(driver.master), configurable: true },
    slaves: { get: () => driver.slaves?.map(watched), configurable: true },
  };
}

/** Watches the pools of a driver that has just connected, for everybody who uses it. */
export function watchInPlace(driver: TypeormDriver, tracker: SessionTracker): void {
  if (!isPostgres(driver)) {
    Object.defineProperties(driver, watchedMembers(driver, tracker));
    return;
  }
  if (driver.master !== undefined) driver.master = leasingPool(driver.master, tracker);
  if (driver.slaves !== undefined) driver.slaves = driver.slaves.map((pool) => leasingPool(pool, tracker));
}

/** A runner that the application has made itself, and that it ends itself. */
export function watchedRunner(runner: QueryRunner, tracker: SessionTracker): QueryRunner {
  const open = runner as unknown as OpenRunner;
  if (!isPostgres(open.driver)) return watchedSqliteRunner(runner, tracker);
  const wrappers = new WeakMap<PgClient, PgClient>();
  const connect = async (): Promise<PgClient> => {
    const client = await open.connect();
    const wrapper = wrappers.get(client) ?? wrapClient(watchClient(client, tracker));
    wrappers.set(client, wrapper);
    return wrapper;
  };
  return new Proxy(runner, {
    get: (target, property, receiver) =>
      property === "connect" ? connect : Reflect.get(target, property, receiver),
  });
}
