// Starts a real memcached server for a test.
// The client is loaded with it: to compile it within the deadline of the first call would take too long on a busy machine.
import "../../src/backends/memcached/servers.ts";
import { exchange } from "./exchange.ts";
import { binaryOf, thisMachine } from "./machine.ts";
import { soon } from "./pace.ts";
import { type Place, type ServerProcess, startOnFreePort } from "./server-process.ts";
import { until } from "./until.ts";

export interface MemcachedOptions {
  /** Default: 64. */
  readonly memoryMb?: number;
  /** Largest item in bytes. Default: the server's, 1 MiB. */
  readonly maxItemBytes?: number;
  /** More arguments, such as `["-M"]`. */
  readonly args?: readonly string[];
}

export interface MemcachedServer extends ServerProcess {
  readonly url: string;
}

/** Starts a server and waits until it answers. */
export async function startMemcached(options: MemcachedOptions = {}): Promise<MemcachedServer> {
  const { memoryMb = 64, maxItemBytes, args = [] } = options;
  const server = await startOnFreePort("memcached", ({ port }: Place) => ({
    binary: binaryOf("memcached"),
    args: [
      ...["-l", "127.0.0.1", "-p", String(port), "-U", "0", "-m", String(memoryMb)],
      ...(maxItemBytes === undefined ? [] : ["-I", String(maxItemBytes)]),
      // As root it refuses to run unless a user is given.
      ...(thisMachine.isRoot() ? ["-u", "root"] : []),
      ...args,
    ],
    isReady: async (pid) => {
      const statistics = await exchange({ port }, "stats\r\n", (reply) => reply.endsWith("END\r\n"));
      return statistics.includes(`STAT pid ${pid}\r\n`);
    },
  }));
  return Object.assign(server, { url: `memcached://127.0.0.1:${server.port}` });
}

/** Several servers as one store. */
export interface MemcachedRing extends AsyncDisposable {
  readonly servers: readonly MemcachedServer[];
  readonly url: string;
  stop(): Promise<void>;
}

export async function startMemcachedRing(
  count: number,
  options: MemcachedOptions = {},
): Promise<MemcachedRing> {
  const servers = await Promise.all(Array.from({ length: count }, () => startMemcached(options)));
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  return { servers, url: urlOf(servers), stop, [Symbol.asyncDispose]: stop };
}

/** The address of these servers together. */
export function urlOf(servers: readonly MemcachedServer[]): string {
  return `memcached://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
}

/** Freezes a server, and resolves when it has stopped: its threads keep running for a moment after the signal. */
export async function freezeMemcached(server: MemcachedServer): Promise<void> {
  server.freeze();
  const { port } = server;
  const isSilent = (): Promise<boolean> =>
    exchange({ port, timeoutMs: soon(50) }, "mn\r\n", (reply) => reply !== "").then(
      () => false,
      () => true,
    );
  await until(isSilent, { what: "the server has stopped" });
}
