// The parts of node-postgres that a feed uses, described structurally; the package is loaded when a feed connects.
import type { EventEmitter } from "node:events";
import { MissingPeerError } from "../../core/errors.ts";
import { requirePeerVersion } from "../../core/peer-package.ts";
import type { PostgresConnection } from "./feed-options.ts";

export type Row = Readonly<Record<string, unknown>>;

/** The protocol level of a client; absent in the native bindings, which cannot replicate. */
interface WireConnection extends EventEmitter {
  sendCopyFromChunk(chunk: Buffer): void;
  readonly stream: { destroy(): unknown; unref?(): unknown };
}

export interface FeedClient extends EventEmitter {
  readonly connection?: WireConnection;
  connect(): Promise<unknown>;
  query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Row[] }>;
  end(): Promise<void>;
}

export type OpenClient = (extra?: Readonly<Record<string, unknown>>) => Promise<FeedClient>;

/** A client of the connection with `extra` settings, not connected yet. Throws MissingPeerError. */
export function clientsOf(connection: PostgresConnection): OpenClient {
  const config = typeof connection === "string" ? { connectionString: connection } : connection;
  return async (extra = {}) => {
    const { Client } = await loadPg();
    return new Client({ ...config, keepAlive: true, ...extra });
  };
}

interface Pg {
  readonly Client: new (config: object) => FeedClient;
}

const FEATURE = "A feed of PostgreSQL";

async function loadPg(): Promise<Pg> {
  try {
    const loaded = (await import("pg")) as unknown as { readonly default: Pg };
    requirePeerVersion("pg", FEATURE);
    return loaded.default;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ERR_MODULE_NOT_FOUND" && code !== "MODULE_NOT_FOUND") throw error;
    throw new MissingPeerError("pg", FEATURE, { cause: error });
  }
}
