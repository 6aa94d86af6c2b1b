// What Sequelize does over a watched `dialectModule`, whichever database it is.
import { AsyncLocalStorage } from "node:async_hooks";
import { DataTypes, type Model, type ModelStatic, type Options, Sequelize } from "sequelize";
import { expect, test } from "vitest";
import type { CountingCache } from "./database.ts";

export interface SequelizeStage {
  readonly cache: CountingCache;
  atEnd(close: () => Promise<unknown>): void;
  changeBehind(name: string): Promise<void>;
}

interface User extends Model {
  name: string;
}

/** A namespace as Sequelize wants it: the transaction of a callback is that of every call in it. */
function namespace() {
  const storage = new AsyncLocalStorage<Map<string, unknown>>();
  return {
    get: (name: string) => storage.getStore()?.get(name),
    set: (name: string, value: unknown) => storage.getStore()?.set(name, value),
    run: (work: (context: unknown) => unknown) =>
      storage.run(new Map(storage.getStore()), () => work(undefined)),
    bind: (work: (...args: unknown[]) => unknown) => {
      const store = new Map(storage.getStore());
      return (...args: unknown[]) => storage.run(store, () => work(...args));
    },
  };
}

export function sequelizeRules(stage: SequelizeStage, optionsOf: () => Options): void {
  const USERS = ["table:users"];

  function open(): { readonly sequelize: Sequelize; readonly User: ModelStatic<User> } {
    const sequelize = new Sequelize({ logging: false, pool: { max: 4 }, ...optionsOf() });
    stage.atEnd(() => sequelize.close());
    const columns = { id: { type: DataTypes.INTEGER, primaryKey: true }, name: DataTypes.STRING };
    const User = sequelize.define<User>("users", columns, { timestamps: false, tableName: "users" });
    return { sequelize, User };
  }

  const nameOf = async (User: ModelStatic<User>, transaction: object = {}): Promise<string | undefined> =>
    (await User.findByPk(1, transaction))?.name;

  test("caches reads, and invalidates what models write", async () => {
    const { User, sequelize } = open();
    expect(await nameOf(User)).toBe("Ada");
    await stage.changeBehind("Bob");
    expect(await nameOf(User)).toBe("Ada");
    expect(stage.cache.invalidated).toEqual([]);
    const writes: readonly (() => Promise<unknown>)[] = [
      () => User.update({ name: "x" }, { where: { id: 1 } }),
      () =>
        User.bulkCreate([
          { id: 2, name: "y" },
          { id: 3, name: "z" },
        ]),
      () => User.upsert({ id: 1, name: "u" }),
      async () => Object.assign((await User.findByPk(2)) as User, { name: "saved" }).save(),
      async () => (await User.findByPk(3))?.destroy(),
      () => sequelize.query("UPDATE users SET name = ? WHERE id = 1", { replacements: ["raw"] }),
      () => User.destroy({ where: { id: 2 } }),
    ];
    for (const write of writes) {
      await User.count();
      const before = stage.cache.invalidated.length;
      await write();
      expect(stage.cache.invalidated.slice(before)).toEqual([USERS]);
    }
    expect(await User.count()).toBe(1);
    expect(await nameOf(User)).toBe("raw");
  });

  test("invalidates at the commit of a managed transaction, and not at a rollback", async () => {
    const { User, sequelize } = open();
    expect(await nameOf(User)).toBe("Ada");
    await sequelize.transaction(async (transaction) => {
      await User.update({ name: "Bob" }, { where: { id: 1 }, transaction });
      expect(await nameOf(User, { transaction })).toBe("Bob");
      await sequelize.transaction({ transaction }, (inner) =>
        User.create({ id: 2, name: "x" }, { transaction: inner }),
      );
      expect(stage.cache.invalidated).toEqual([]);
      expect(await nameOf(User)).toBe("Ada");
    });
    expect(await nameOf(User)).toBe("Bob");
    expect(stage.cache.invalidated).toEqual([USERS]);
    const undone = sequelize.transaction(async (transaction) => {
      await User.update({ name: "lost" }, { where: { id: 1 }, transaction });
      throw new Error("undo");
    });
    await expect(undone).rejects.toThrow("undo");
    expect(stage.cache.invalidated).toEqual([USERS]);
    expect(await nameOf(User)).toBe("Bob");
  });

  test("sees unmanaged transactions, and hooks that run before their commit", async () => {
    const { User, sequelize } = open();
    expect(await nameOf(User)).toBe("Ada");
    const seen: unknown[] = [];
    User.addHook("afterUpdate", async () => {
      // A read of its own, outside of the transaction.
      seen.push(await nameOf(User));
    });
    const rolledBack = await sequelize.transaction();
    const user = (await User.findByPk(1, { transaction: rolledBack })) as User;
    await user.update({ name: "lost" }, { transaction: rolledBack });
    await rolledBack.rollback();
    expect(stage.cache.invalidated).toEqual([]);
    const committed = await sequelize.transaction();
    const again = (await User.findByPk(1, { transaction: committed })) as User;
    await again.update({ name: "Bob" }, { transaction: committed });
    await committed.commit();
    expect(await nameOf(User)).toBe("Bob");
    expect(seen).toEqual(["Ada", "Ada"]);
    expect(stage.cache.invalidated).toEqual([USERS]);
  });

  test("follows transactions that are found by the context of a call", async () => {
    const use = (given: unknown) => (Sequelize as unknown as { useCLS(given: unknown): void }).useCLS(given);
    use(namespace());
    try {
      const { User, sequelize } = open();
      await nameOf(User);
      await sequelize.transaction(async () => {
        await User.update({ name: "Bob" }, { where: { id: 1 } });
        expect(await nameOf(User)).toBe("Bob");
        expect(stage.cache.invalidated).toEqual([]);
      });
      expect(await nameOf(User)).toBe("Bob");
      expect(stage.cache.invalidated).toEqual([USERS]);
    } finally {
      delete (Sequelize as unknown as { _cls?: unknown })._cls;
    }
  });
}
