// Starts a real memcached server for a test.
import { exchange } from "./exchange.ts";
import { binaryOf, thisMachine } from "./machine.ts";
import { type Place, type ServerProcess, startOnFreePort } from "./server-process.ts";

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
      // As root it refuses to run unless told as whom.
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
