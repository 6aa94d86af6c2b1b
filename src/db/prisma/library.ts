// What of prisma is used, as its objects look; the package itself is never imported.
import type { SqlDriverAdapterFactory } from "@prisma/client/runtime/client";
import { isPool, type PgPool } from "../pg/library.ts";

export type { SqlDriverAdapterFactory };

type SqlDriverAdapter = Awaited<ReturnType<SqlDriverAdapterFactory["connect"]>>;

/** The adapter of node-postgres, which has a pool. */
export interface PgAdapter extends SqlDriverAdapter {
  readonly client: PgPool;
}

export interface Engine {
  stop(): Promise<void>;
}

interface EngineConfig {
  readonly adapter?: SqlDriverAdapterFactory;
}

/** What a client is under its surface. */
export interface ClientParts {
  readonly _originalClient: ClientParts;
  readonly _engine: Engine;
  readonly _engineConfig: EngineConfig;
  readonly _requestHandler: { readonly logEmitter: unknown };
  readonly _extensions: unknown;
  $extends(extension: object): object;
  $on?: unknown;
}

export function isPgAdapter(adapter: SqlDriverAdapter): adapter is PgAdapter {
  const { client } = adapter as Partial<PgAdapter>;
  return typeof client === "object" && client !== null && isPool(client);
}

/** A client over the adapter of node-postgres; that of a transaction cannot be extended. */
export function isPrismaClient(session: object): session is ClientParts {
  const { $extends, _engine, _engineConfig } = session as Partial<ClientParts>;
  const looksRight = typeof $extends === "function" && typeof _engine === "object";
  return looksRight && _engineConfig?.adapter?.adapterName === "@prisma/adapter-pg";
}
