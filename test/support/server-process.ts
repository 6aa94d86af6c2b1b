// One server process of a test: started in its own folder, ended by its own id, whatever happens to the test.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Reservation, reservePort } from "./port.ts";
import { recordServer, serversFolder } from "./run-folder.ts";
import { until } from "./until.ts";

/** How a server is started, and how to check that it answers. */
export interface Launch {
  readonly binary: string;
  readonly args: readonly string[];
  /** Besides this process's own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** True once the server with this process id answers; another process on the same port does not count. */
  isReady(pid: number): Promise<boolean>;
}

/** Where a server lives. */
export interface Place {
  readonly port: number;
  /** Its own, removed by stop(). */
  readonly folder: string;
}

class PortTakenError extends Error {}

const running = new Set<ChildProcess>();

function endAll(): void {
  for (const child of running) child.kill("SIGKILL");
}

let guarding = false;

/** Servers end with the worker that started them. A worker that is itself killed leaves them to the run's teardown. */
function guard(): void {
  if (guarding) return;
  guarding = true;
  process.on("exit", endAll);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      endAll();
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  }
}

/** Reserves a port, makes a folder and starts what `plan` says there; tries another port when that one is taken. */
export async function startOnFreePort(
  name: string,
  plan: (place: Place) => Launch,
  { withBus = false } = {},
): Promise<ServerProcess> {
  for (let attempt = 1; ; attempt++) {
    const reservation = await reservePort({ withBus });
    const server = new ServerProcess(name, reservation, mkdtempSync(join(serversFolder(), `${name}-`)), plan);
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.stop();
      if (!(error instanceof PortTakenError) || attempt === 5) throw error;
    }
  }
}

export class ServerProcess {
  readonly name: string;
  readonly port: number;
  readonly folder: string;
  readonly #reservation: Reservation;
  readonly #launch: Launch;
  #child: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();

  constructor(name: string, reservation: Reservation, folder: string, plan: (place: Place) => Launch) {
    this.name = name;
    this.port = reservation.port;
    this.folder = folder;
    this.#reservation = reservation;
    this.#launch = plan(this);
  }

  /** Of the process that runs now; a restart changes it. */
  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error(`${this.name} on port ${this.port} is not running.`);
    return pid;
  }

  /** What the server wrote, all starts of it. */
  log(): string {
    return readFileSync(this.#logFile, "utf8");
  }

  /** Starts the process and waits until it answers. Called by the starters; tests use restart(). */
  async start(): Promise<void> {
    const child = await this.#spawn();
    try {
      await until(() => this.#launch.isReady(child.pid!), {
        what: `${this.name} answers on port ${this.port}`,
        stopWhen: () => this.#child !== child,
      });
    } catch (error) {
      const log = this.log();
      if (/address already in use/i.test(log)) throw new PortTakenError(`Port ${this.port} is taken.`);
      throw new Error(
        `${this.name} did not start on port ${this.port}. Its log ends:\n${log.slice(-2_000)}`,
        {
          cause: error,
        },
      );
    }
  }

  async #spawn(): Promise<ChildProcess> {
    guard();
    const log = openSync(this.#logFile, "a");
    const { binary, args, env } = this.#launch;
    const child = spawn(binary, args, {
      cwd: this.folder,
      env: { ...process.env, ...env },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    running.add(child);
    if (child.pid === undefined) {
      running.delete(child);
      throw (await once(child, "error"))[0];
    }
    const strikeOff = recordServer(child.pid);
    this.#child = child;
    this.#exited = once(child, "exit").then(() => {
      running.delete(child);
      strikeOff();
      if (this.#child === child) this.#child = undefined;
    });
    return child;
  }

  /** Sends a signal that ends the process and waits for its end. Folder and port are kept for restart(). */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    this.#child?.kill(signal);
    // A frozen process takes any other signal than SIGKILL only once it runs again.
    if (signal !== "SIGKILL") this.#child?.kill("SIGCONT");
    await this.#exited;
  }

  /** Freezes the process with its sockets open, like a hung server. */
  freeze(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  thaw(): void {
    process.kill(this.pid, "SIGCONT");
  }

  /** Ends the process if it runs and starts it on the same port and folder. SIGKILL: as after a crash. */
  async restart(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await this.kill(signal);
    await this.start();
  }

  /** Ends the process for good, frees its port and removes its folder. Idempotent. */
  async stop(): Promise<void> {
    await this.kill();
    this.#reservation.release();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  get #logFile(): string {
    return join(this.folder, "server.log");
  }
}
