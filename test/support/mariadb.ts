// Starts a real MariaDB server for a test.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import mysql from "mysql2/promise";
import { asNobody, type DatabaseAddress, type DatabaseServer, databaseServer } from "./database-server.ts";
import { binaryOf, thisMachine } from "./machine.ts";
import { type Launch, type Place, startOnFreePort } from "./server-process.ts";

export type { DatabaseServer as MariadbServer } from "./database-server.ts";

const SUPERUSER = "test";

/** The users that may connect. The server reads it at every start. */
const USERS = `CREATE USER IF NOT EXISTS ${SUPERUSER}@'%';\nGRANT ALL ON *.* TO ${SUPERUSER}@'%' WITH GRANT OPTION;\n`;

/**
 * Makes the system tables, then becomes the server, so that the process id stays. `$0` is the server, `$1` the data folder,
 * the rest goes to the server.
 */
const LAUNCHER = `
data="$1"; shift
if ! [ -d "$data/mysql" ]; then
  for share in "$(dirname "$0")"/../share/*; do
    [ -f "$share/mysql_system_tables.sql" ] && break
  done
  { echo "CREATE DATABASE mysql;"; echo "USE mysql;"; cat "$share/mysql_system_tables.sql"; } |
    "$0" --no-defaults --bootstrap --datadir="$data" "$@" || exit 1
fi
exec "$0" --no-defaults --datadir="$data" "$@"`;

/** Starts a server that keeps nothing for later, with more `options`, and waits until it answers. */
export async function startMariadb(options: readonly string[] = []): Promise<DatabaseServer> {
  const server = await startOnFreePort("mariadb", (place) => planMariadb(place, options));
  return databaseServer(server, SUPERUSER, "mysql", ask);
}

function planMariadb({ folder, port }: Place, more: readonly string[]): Launch {
  const data = join(folder, "data");
  // A server that starts removes the temporary tables of others in the same folder.
  const temporary = join(folder, "temporary");
  for (const own of [data, temporary]) mkdirSync(own, { mode: 0o700 });
  const users = join(folder, "users.sql");
  writeFileSync(users, USERS, { mode: 0o644 });
  const options = [
    `--port=${port}`,
    "--bind-address=127.0.0.1",
    `--socket=${join(data, "socket")}`,
    `--pid-file=${join(data, "pid")}`,
    `--tmpdir=${temporary}`,
    "--skip-name-resolve",
    "--skip-log-bin",
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=16M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-temp-data-file-path=ibtmp1:4M:autoextend",
    "--innodb-data-file-path=ibdata1:8M:autoextend",
    "--loose-innodb-undo-tablespaces=0",
    "--performance-schema=0",
    ...more,
  ];
  const launch = ["/bin/sh", "-c", LAUNCHER, binaryOf("mariadbd"), data, ...options, `--init-file=${users}`];
  const [binary = "", ...args] = thisMachine.isRoot() ? asNobody(launch, folder, [data, temporary]) : launch;
  return {
    binary,
    args,
    isReady: async () => {
      const address = { host: "127.0.0.1", port, user: SUPERUSER, database: "mysql" };
      const [row] = await ask(address, "SELECT @@datadir AS folder");
      return row?.folder === `${data}/`;
    },
  };
}

async function ask(address: DatabaseAddress, text: string): Promise<Record<string, unknown>[]> {
  const connection = await mysql.createConnection(address);
  try {
    const [rows] = await connection.query(text);
    return rows as Record<string, unknown>[];
  } finally {
    await connection.end();
  }
}
