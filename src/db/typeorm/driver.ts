// Watches the connections that typeorm's driver gives to its query runners.
import type { SessionTracker } from "../../core/db-session.ts";
import { watchClient, wrapClient } from "../pg/client.ts";
import { leasingPool } from "../pg/leased-client.ts";
import type { PgClient, PgPool } from "../pg/library.ts";
import { isPostgres, type OpenRunner, type QueryRunner, type TypeormDriver } from "./library.ts";
import { watchedSqliteRunner } from "./sqlite-runner.ts";

/** Overrides for members of the driver. They are getters, because the driver connects after it is constructed. */
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

/** Watches the pools of a driver that has just connected, for all of its users. */
export function watchInPlace(driver: TypeormDriver, tracker: SessionTracker): void {
  if (!isPostgres(driver)) {
    Object.defineProperties(driver, watchedMembers(driver, tracker));
    return;
  }
  if (driver.master !== undefined) driver.master = leasingPool(driver.master, tracker);
  if (driver.slaves !== undefined) driver.slaves = driver.slaves.map((pool) => leasingPool(pool, tracker));
}

/** A runner that the application created and will release itself. */
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
