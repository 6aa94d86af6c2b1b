// Free loopback ports, reserved for one server of this run until it is stopped, restarts included.
import { closeSync, openSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { runFolder } from "./run-folder.ts";

/** A cluster node also listens here, counted from its port. */
const BUS_OFFSET = 10_000;

// Below the range from which systems take the ports of outgoing connections, bus included: no connection of a test
// can sit on the port of a server that is being restarted.
const FIRST_PORT = 10_000;
const LAST_PORT = 21_999;

export interface Reservation {
  readonly port: number;
  release(): void;
}

/**
 * A free port, with a free bus port if requested. The reservation is a file created exclusively, so two workers
 * of a run never get the same one; if another process takes it, the caller retries with another port.
 */
export async function reservePort({ withBus = false } = {}): Promise<Reservation> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1));
    const wanted = withBus ? [port, port + BUS_OFFSET] : [port];
    const release = claim(wanted);
    if (release === undefined) continue;
    const free = await Promise.all(wanted.map(isFree));
    if (free.every(Boolean)) return { port, release };
    release();
  }
  throw new Error(`No free port found between ${FIRST_PORT} and ${LAST_PORT} in 200 attempts.`);
}

function claim(ports: readonly number[]): (() => void) | undefined {
  const claimed: string[] = [];
  const release = () => {
    for (const file of claimed) rmSync(file, { force: true });
  };
  for (const port of ports) {
    const file = join(runFolder(), "ports", String(port));
    try {
      closeSync(openSync(file, "wx"));
      claimed.push(file);
    } catch (error) {
      release();
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return undefined;
      throw error;
    }
  }
  return release;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen({ port, host: "127.0.0.1", exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
