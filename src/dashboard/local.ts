// The dashboard on a loopback address, for one person: a random token instead of `authorize`.
import { createServer } from "node:http";
import { nodeCrypto } from "../core/lazy-builtin.ts";
import type { XCache } from "../xcache.ts";
import { requireDashboardOptions } from "./checked-options.ts";
import type { DashboardExtras } from "./data.ts";
import { DashboardHandler } from "./handler.ts";
import { serveNode } from "./node-adapter.ts";

export interface LocalOptions extends DashboardExtras {
  readonly cache: XCache;
  /** 0: any free one. */
  readonly port: number;
  readonly values: boolean;
  readonly writes: boolean;
  /** Called when a request arrives, and when one ends. */
  readonly onRequest: (open: number) => void;
}

export interface LocalDashboard {
  /** With the token in its fragment, which no server ever sees. */
  readonly url: string;
  close(): Promise<void>;
}

/** Rejects if the port is taken. */
export async function serveLocally({
  cache,
  port,
  values,
  writes,
  onRequest,
  ...extras
}: LocalOptions): Promise<LocalDashboard> {
  const token = nodeCrypto().randomBytes(24).toString("base64url");
  const expected = Buffer.from(`Bearer ${token}`);
  const hosts: string[] = [];
  let handler: DashboardHandler | undefined;
  let open = 0;
  const server = createServer((request, response) => {
    onRequest(++open);
    response.once("close", () => onRequest(--open));
    if (handler === undefined) response.destroy();
    else serveNode(handler, request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const { port: bound } = server.address() as { port: number };
  hosts.push(`127.0.0.1:${bound}`, `localhost:${bound}`);
  handler = new DashboardHandler(
    requireDashboardOptions({
      cache,
      values,
      writes,
      hosts,
      // The page holds no data; the browser asks for it before it knows the token.
      authorize: (request, { isPage }) => isPage || isToken(request.headers.get("authorization"), expected),
    }),
    extras,
  );
  return {
    url: `http://127.0.0.1:${bound}/#token=${token}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** In a time that says nothing about the token. */
function isToken(given: string | null, expected: Buffer): boolean {
  const arrived = Buffer.from(given ?? "");
  return arrived.length === expected.length && nodeCrypto().timingSafeEqual(arrived, expected);
}
