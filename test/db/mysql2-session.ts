// The row of a user through mysql2.
import type { Connection, Pool, RowDataPacket } from "mysql2/promise";
import type { UserSession, UserTransaction } from "./library-rules.ts";

type Executor = Pick<Connection, "query" | "execute">;

const update = (executor: Executor, name: string): Promise<unknown> =>
  executor.execute("UPDATE users SET name = ? WHERE id = ?", [name, 1]);

export function mysql2Rows(pool: Pool, write = update): UserSession {
  let savepoints = 0;
  const row = (executor: Executor): UserTransaction => ({
    read: async () => {
      const [rows] = await executor.execute<RowDataPacket[]>("SELECT name FROM users WHERE id = ?", [1]);
      return String(rows[0]?.name);
    },
    write: (name) => write(executor, name),
    writeRaw: (name) => executor.query("update `users` set ? where id = 1", { name }),
    insertAgain: () => executor.query("INSERT INTO users VALUES (1, 'again')"),
    async nested(work) {
      const savepoint = `nested_${++savepoints}`;
      await executor.query(`SAVEPOINT ${savepoint}`);
      try {
        await work(row(executor));
      } catch (error) {
        await executor.query(`ROLLBACK TO ${savepoint}`);
        throw error;
      }
      await executor.query(`RELEASE SAVEPOINT ${savepoint}`);
    },
  });
  const transaction: UserSession["transaction"] = async (work) => {
    const connection = await pool.getConnection();
    try {
      await connection.beginTransaction();
      await work(row(connection));
      await connection.commit();
    } catch (error) {
      await connection.rollback();
      throw error;
    } finally {
      connection.release();
    }
  };
  return { ...row(pool), transaction, snapshot: transaction };
}
