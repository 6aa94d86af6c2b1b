// What the database servers for tests have in common: their databases, and a user to run as.
import { chmodSync, chownSync } from "node:fs";
import { dirname } from "node:path";
import { runFolder } from "./run-folder.ts";
import type { ServerProcess } from "./server-process.ts";

export interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
}

export interface DatabaseServer extends ServerProcess {
  /** How to reach a database of this server, without a password; `user` may do everything unless given. */
  at(database: string, user?: string): DatabaseAddress;
  /** Makes an empty database with a name of its own. */
  createDatabase(): Promise<string>;
}

export type Ask = (address: DatabaseAddress, text: string) => Promise<Record<string, unknown>[]>;

/** `own`: the database that every server has. */
export function databaseServer(
  server: ServerProcess,
  superuser: string,
  own: string,
  ask: Ask,
): DatabaseServer {
  let made = 0;
  const at = (database: string, user = superuser): DatabaseAddress => ({
    host: "127.0.0.1",
    port: server.port,
    user,
    database,
  });
  return Object.assign(server, {
    at,
    async createDatabase() {
      const name = `test_${++made}`;
      await ask(at(own), `CREATE DATABASE ${name}`);
      return name;
    },
  });
}

/** The servers refuse to run as root; this user owns nothing on any system. */
const NOBODY = 65_534;

/** Every Linux has `chroot`, which switches to a user by number without a process in between. */
export function asNobody(launch: readonly string[], folder: string, owned: readonly string[]): string[] {
  for (const path of owned) chownSync(path, NOBODY, NOBODY);
  // The server has to reach its data, which is in these.
  for (const outer of [runFolder(), dirname(folder), folder]) chmodSync(outer, 0o711);
  return ["chroot", `--userspec=${NOBODY}:${NOBODY}`, "--groups=", "/", ...launch];
}
