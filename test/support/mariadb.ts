// Starts a real MariaDB server for a test.
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import mysql from "mysql2/promise";
import { binaryOf, thisMachine } from "./machine.ts";
import { runFolder } from "./run-folder.ts";
import { type Launch, type Place, type ServerProcess, startOnFreePort } from "./server-process.ts";

export interface MariadbAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

export interface MariadbServer extends ServerProcess {
  /** How to reach a database of this server, without a password; `user` may do everything unless given. */
  at(database: string, user?: string): MariadbAddress;
  /** Makes an empty database with a name of its own. */
  createDatabase(): Promise<string>;
}

const SUPERUSER = "test";
/** The server refuses to run as root; this user owns nothing on any system. */
const NOBODY = 65_534;

/** Who may connect. The server reads it at every start. */
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
export async function startMariadb(options: readonly string[] = []): Promise<MariadbServer> {
  const server = await startOnFreePort("mariadb", (place) => planMariadb(place, options));
  let made = 0;
  const at = (database: string, user = SUPERUSER): MariadbAddress => ({
    host: "127.0.0.1",
    port: server.port,
    user,
    database,
  });
  return Object.assign(server, {
    at,
    async createDatabase() {
      const name = `test_${++made}`;
      await ask(at("mysql"), `CREATE DATABASE ${name}`);
      return name;
    },
  });
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

/** `chroot` is what every Linux has to become somebody else by number without another process in between. */
function asNobody(launch: readonly string[], folder: string, owned: readonly string[]): string[] {
  for (const own of owned) chownSync(own, NOBODY, NOBODY);
  // The server has to reach its data, which is in these.
  for (const outer of [runFolder(), folder]) chmodSync(outer, 0o711);
  return ["chroot", `--userspec=${NOBODY}:${NOBODY}`, "--groups=", "/", ...launch];
}

async function ask(address: MariadbAddress, text: string): Promise<Record<string, unknown>[]> {
  const connection = await mysql.createConnection(address);
  try {
    const [rows] = await connection.query(text);
    return rows as Record<string, unknown>[];
  } finally {
    await connection.end();
  }
}
