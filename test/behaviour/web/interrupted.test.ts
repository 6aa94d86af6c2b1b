// A response that is interrupted half way, by its connection or by its handler, is never taken for a whole one.
import { request as httpRequest, type IncomingMessage } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { Readable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { soon } from "../../support/pace.ts";
import { ADAPTERS, type Adapter, listen, listenHttp2, ON_HTTP2, type Script, subject } from "./subject.ts";
import { askOnStream } from "./wire.ts";

const HALF = "half of the page, ";
const PAGE = HALF + HALF;

/** What happens after the client has got one half; returns the other. */
const ACCIDENTS: Record<string, (request: IncomingMessage) => string> = {
  "its connection is destroyed and the handler goes on": (request) => {
    request.socket.destroy();
    return HALF;
  },
  "its connection is destroyed and the handler fails": (request) => {
    request.socket.destroy();
    throw new Error("failed on purpose");
  },
  "the handler fails": () => {
    throw new Error("failed on purpose");
  },
};

interface Client {
  /** Resolves when the response is over, however it ends. */
  interrupted(path: string, onHalf: () => void): Promise<void>;
  get(path: string): Promise<{ readonly status: number; readonly body: string }>;
}

function clientOf(port: number, ask: (path: string) => ReturnType<Client["get"]>): Client {
  return {
    interrupted: (path, onHalf) =>
      new Promise((resolve) => {
        const sent = httpRequest({ host: "127.0.0.1", port, path, headers: { host: "site.test" } }, (got) => {
          got.once("data", onHalf);
          got.on("error", () => {});
          got.on("close", resolve);
        });
        sent.on("error", () => resolve());
        sent.end();
      }),
    get: ask,
  };
}

function clientOfHttp2(port: number): Client {
  const open = (): ClientHttp2Session => {
    const session = connect(`http://127.0.0.1:${port}`);
    onTestFinished(() => session.destroy());
    return session;
  };
  return {
    interrupted: (path, onHalf) =>
      new Promise((resolve) => {
        const sent = open().request({ ":path": path, ":authority": "site.test" });
        sent.once("data", onHalf);
        sent.on("error", () => {});
        sent.on("close", resolve);
      }),
    get: (path) => askOnStream(open(), path, "GET", soon(3_000)),
  };
}

describe.each([
  ...ADAPTERS.map((adapter): [string, Adapter, typeof listen] => ["HTTP/1.1", adapter, listen]),
  ...ON_HTTP2.map((adapter): [string, Adapter, typeof listen] => ["HTTP/2", adapter, listenHttp2]),
])("with %s on %s", (_, adapter, open) => {
  test.each(
    Object.entries(ACCIDENTS).flatMap(([name, accident]) =>
      [false, true].map((isFramed) => [name, isFramed ? "with" : "without", accident, isFramed] as const),
    ),
  )(
    "half of a response is not all of it if %s, %s a Content-Length",
    async (_name, _framing, accident, isFramed) => {
      let own: IncomingMessage | undefined;
      let onHalf = (): void => {};
      const half = new Promise<void>((resolve) => {
        onHalf = resolve;
      });
      async function* interrupted(request: IncomingMessage): AsyncGenerator<string> {
        yield HALF;
        await half;
        yield accident(request);
      }
      const length = isFramed ? { "content-length": String(PAGE.length) } : {};
      const script: Script = ({ call }) => ({
        headers: { "content-type": "text/plain", ...length },
        body: call > 1 ? PAGE : Readable.from(interrupted(own!), { objectMode: false }),
      });
      const around = (request: IncomingMessage, run: () => void): void => {
        own ??= request;
        run();
      };
      const { port, ask } = await subject(adapter, script, {}, around, open);
      const client = open === listen ? clientOf(port, ask) : clientOfHttp2(port);
      await client.interrupted("/page", onHalf);
      for (let visit = 0; visit < 2; visit++) {
        const { status, body } = await client.get("/page");
        expect([status, body]).toEqual([200, PAGE]);
      }
    },
  );
});
