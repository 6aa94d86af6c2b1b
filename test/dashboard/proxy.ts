// A reverse proxy in front of a dashboard, with the habits of real ones.
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createGzip } from "node:zlib";
import { onTestFinished } from "vitest";

export interface ProxyHabits {
  /** Served below this path, which is removed before a request is passed on. */
  readonly strips?: string;
  /** Replaces Host with the server's own, as nginx does unless it is configured otherwise. */
  readonly replacesHost?: boolean;
  /** Collects a whole answer before it passes it on. */
  readonly collects?: boolean;
  /** Compresses what may be transformed. */
  readonly compresses?: boolean;
  /** Ends every stream after its first line. */
  readonly endsStreams?: boolean;
}

export interface Proxy {
  readonly url: string;
  /** The paths that were asked for, as the browser has them. */
  readonly asked: readonly string[];
}

export async function startProxy(port: number, habits: ProxyHabits): Promise<Proxy> {
  const { strips = "", replacesHost = false } = habits;
  const asked: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? "/";
    asked.push(path);
    const headers = { ...incoming.headers, ...(replacesHost && { host: `127.0.0.1:${port}` }) };
    const passed = request({
      ...{ host: "127.0.0.1", port, method: incoming.method, headers },
      path: path.slice(strips.length) || "/",
    });
    passed.on("response", (answer) => passOn(answer, outgoing, habits));
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${strips}`, asked };
}

function passOn(answer: IncomingMessage, outgoing: ServerResponse, habits: ProxyHabits): void {
  const { statusCode = 502, headers } = answer;
  answer.on("error", () => outgoing.destroy());
  const isStream = String(headers["content-type"]).startsWith("application/x-ndjson");
  if (habits.compresses && !String(headers["cache-control"]).includes("no-transform")) {
    outgoing.writeHead(statusCode, { ...headers, "content-encoding": "gzip" });
    answer.pipe(createGzip()).pipe(outgoing);
  } else if (habits.collects) {
    const parts: Buffer[] = [];
    answer.on("data", (part: Buffer) => parts.push(part));
    answer.on("end", () => outgoing.writeHead(statusCode, headers).end(Buffer.concat(parts)));
  } else {
    outgoing.writeHead(statusCode, headers);
    if (!habits.endsStreams || !isStream) answer.pipe(outgoing);
    else
      answer.on("data", (part: Buffer) => {
        const end = part.indexOf("\n") + 1;
        if (end === 0) outgoing.write(part);
        else {
          answer.destroy();
          outgoing.end(part.subarray(0, end));
        }
      });
  }
}
