import { randomBytes } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { inspect } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { DeliveryFailure } from "../../src/alerts/destination.ts";
import type { AlertNotification, Outgoing } from "../../src/alerts/notification.ts";
import { requireSecrets, signatures } from "../../src/alerts/signature.ts";
import { WebhookDestination } from "../../src/alerts/webhook.ts";
import { requireWebhookAddress } from "../../src/alerts/webhook-address.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { VERSION } from "../../src/version.ts";
import { makeCertificates } from "../support/certificate.ts";
import { until } from "../support/until.ts";
import { answer, Receiver } from "./receiver.ts";

const SECRET = `whsec_${randomBytes(32).toString("base64")}`;

const NOTIFICATION: AlertNotification = {
  type: "alert.firing",
  timestamp: "2026-01-01T00:00:30.000Z",
  data: {
    name: "Trefferquote ü\r\n☂",
    status: "firing",
    metric: "hit_rate",
    comparison: "less_than",
    threshold: 0.7,
    value: 0.5,
    since: "2026-01-01T00:00:00.000Z",
    repeat: 0,
    incidentId: "msg_0",
    instance: "here",
    summary: "hit_rate is low",
  },
};
const OUTGOING: Outgoing = { id: "msg_0123", notification: NOTIFICATION };

interface Sending {
  readonly secret?: string;
  readonly signal?: AbortSignal;
  readonly clock?: ManualClock;
}

function send(url: string, { secret, signal = new AbortController().signal, clock }: Sending = {}) {
  const keys = secret === undefined ? [] : requireSecrets(secret);
  const destination = new WebhookDestination(requireWebhookAddress(url), keys, clock ?? new ManualClock());
  return destination.send(OUTGOING, signal);
}

async function failureOf(sent: Promise<void>): Promise<DeliveryFailure> {
  const failure: unknown = await sent.then(
    () => "delivered",
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(DeliveryFailure);
  return failure as DeliveryFailure;
}

/** A raw TCP server, for answers that no HTTP server would give. */
async function rawServer(talk: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    talk(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
}

describe("a webhook", () => {
  it("is a JSON POST in snake_case with the Standard Webhooks headers", async () => {
    await using receiver = await Receiver.start();
    const clock = new ManualClock(1_767_225_600_999);
    await send(`${receiver.url}?a=b#part`, { secret: SECRET, clock });
    const [request] = receiver.received;
    expect(request).toMatchObject({ method: "POST", path: "/hook?a=b" });
    const { incidentId, ...data } = NOTIFICATION.data;
    expect(request?.payload).toEqual({ ...NOTIFICATION, data: { ...data, incident_id: incidentId } });
    const { body, headers } = request!;
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      "user-agent": `xcache/${VERSION}`,
      "webhook-id": "msg_0123",
      "webhook-timestamp": "1767225600",
      "webhook-signature": signatures(requireSecrets(SECRET), {
        id: "msg_0123",
        timestamp: 1_767_225_600,
        body,
      }),
      connection: "close",
    });
    expect(headers.authorization).toBeUndefined();
  });

  it("is stamped with wall-clock time, which is what its receiver knows", async () => {
    await using receiver = await Receiver.start();
    const clock = Object.assign(new ManualClock(0), { wall: () => 1_767_225_600_999 });
    await send(receiver.url, { clock });
    expect(receiver.received[0]?.headers).toMatchObject({ "webhook-timestamp": "1767225600" });
  });

  it("is not signed without a secret", async () => {
    await using receiver = await Receiver.start();
    await send(receiver.url);
    expect(receiver.received[0]?.headers).not.toHaveProperty("webhook-signature");
  });

  it("carries its URL's credentials in a header, not in the URL or the label", async () => {
    await using receiver = await Receiver.start();
    const url = receiver.url.replace("://", "://us%20er:p%40ss%C3%BC@");
    await send(url);
    const [request] = receiver.received;
    expect(request?.path).toBe("/hook");
    expect(request?.headers.authorization).toBe(`Basic ${Buffer.from("us er:p@ssü").toString("base64")}`);
    expect(requireWebhookAddress(url).label).toBe(`webhook http://127.0.0.1:${receiver.port}`);
  });

  it.each([200, 201, 204, 299])(
    "is delivered when the answer is %d, and its connection is closed",
    async (status) => {
      await using receiver = await Receiver.start(answer(status));
      await send(receiver.url);
      await until(async () => (await receiver.openConnections()) === 0, { what: "no connection left" });
    },
  );

  it.each([500, 502, 503, 504, 429, 408])("that was answered %d is retryable", async (status) => {
    await using receiver = await Receiver.start(answer(status));
    const failure = await failureOf(send(receiver.url));
    expect(failure).toMatchObject({ message: `it answered ${status}`, retryable: true, retryAfterMs: 0 });
  });

  it.each([400, 401, 403, 404, 422])("that was answered %d is not retryable", async (status) => {
    await using receiver = await Receiver.start(answer(status, { "retry-after": "5" }));
    expect(await failureOf(send(receiver.url))).toMatchObject({
      retryable: false,
      retryAfterMs: 0,
      gone: false,
    });
  });

  it("that was answered 410 is never sent again", async () => {
    await using receiver = await Receiver.start(answer(410));
    expect(await failureOf(send(receiver.url))).toMatchObject({ retryable: false, gone: true });
  });

  it.each([301, 302, 303, 307, 308])(
    "does not follow a %d redirect, not even to the same host",
    async (status) => {
      await using receiver = await Receiver.start((response, { path }) => {
        answer(path === "/hook" ? status : 200, { location: "/elsewhere" })(
          response,
          receiver.received[0]!,
          1,
        );
      });
      const failure = await failureOf(send(receiver.url));
      expect(failure.message).toContain(`it answered ${status}, a redirect`);
      expect(failure.retryable).toBe(false);
      expect(receiver.received).toHaveLength(1);
    },
  );

  it.each([
    ["120", 120_000],
    ["0", 0],
    ["Thu, 01 Jan 2026 00:02:00 GMT", 120_000],
    ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
    ["99999999", 3_600_000],
    ["Fri, 01 Jan 2027 00:00:00 GMT", 3_600_000],
    ["soon", 0],
    ["-5", 0],
  ])("honours Retry-After: %s up to an hour", async (retryAfter, retryAfterMs) => {
    await using receiver = await Receiver.start(answer(503, { "retry-after": retryAfter }));
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    expect(await failureOf(send(receiver.url, { clock }))).toMatchObject({ retryable: true, retryAfterMs });
  });
});

describe("a receiver that misbehaves", () => {
  it("by never answering holds no resources after the timeout", async () => {
    await using receiver = await Receiver.start(() => {});
    const attempt = new AbortController();
    const sent = failureOf(send(receiver.url, { signal: attempt.signal }));
    await receiver.has(1);
    const reason = new DeliveryFailure("too long", { retryable: true });
    attempt.abort(reason);
    expect(await sent).toBe(reason);
    await until(async () => (await receiver.openConnections()) === 0, { what: "no connection left" });
  });

  it("by never ending its answer is cut off at the timeout, and its status counts", async () => {
    await using receiver = await Receiver.start((response) => {
      response.writeHead(200).write("slow");
    });
    const attempt = new AbortController();
    // Runs when the head has arrived: an attempt aborted before that has failed.
    const cutOff = (): void => attempt.abort(new DeliveryFailure("too long", { retryable: true }));
    subscribe("http.client.response.finish", cutOff);
    onTestFinished(() => void unsubscribe("http.client.response.finish", cutOff));
    await send(receiver.url, { signal: attempt.signal });
    expect(attempt.signal.aborted).toBe(true);
    await until(async () => (await receiver.openConnections()) === 0, { what: "no connection left" });
  });

  it("by answering endlessly is cut off after a few kilobytes", async () => {
    let written = 0;
    let isOver = false;
    await using receiver = await Receiver.start((response) => {
      const block = Buffer.alloc(65_536, "x");
      response.writeHead(200);
      response.on("close", () => {
        isOver = true;
      });
      const pour = (): void => {
        while (!isOver && response.write(block)) written += block.length;
      };
      response.on("drain", pour);
      pour();
    });
    await send(receiver.url);
    await until(() => isOver, { what: "the answer cut off" });
    expect(written).toBeLessThan(32 * 1024 * 1024);
  });

  it("by resetting the connection fails the attempt, which is retryable", async () => {
    const url = await rawServer((socket) => socket.once("data", () => socket.resetAndDestroy()));
    const failure = await failureOf(send(url));
    expect(failure).toMatchObject({ retryable: true, cause: { code: "ECONNRESET" } });
  });

  it("by closing the connection without an answer fails the attempt", async () => {
    const url = await rawServer((socket) => socket.once("data", () => socket.end()));
    expect(await failureOf(send(url))).toMatchObject({ retryable: true, message: "socket hang up" });
  });

  it("by speaking another protocol fails the attempt", async () => {
    const url = await rawServer((socket) => socket.once("data", () => socket.end("220 smtp ready\r\n")));
    expect(await failureOf(send(url))).toMatchObject({ retryable: true });
  });

  it("by echoing the request fails the attempt, and the error shows nothing of it", async () => {
    const url = await rawServer((socket) => socket.pipe(socket));
    const secret = url.replace("://", "://Zq9user:Zq9pass@").concat("Zq9path?token=Zq9");
    const failure = await failureOf(send(secret));
    expect(failure).toMatchObject({ retryable: true, message: expect.stringContaining("Parse Error") });
    const shown = inspect(failure, { depth: 10, showHidden: true, maxArrayLength: null });
    for (const spelling of ["Zq9", Buffer.from("Zq9user:Zq9pass").toString("base64")]) {
      expect(shown).not.toContain(spelling);
      const hex = [...Buffer.from(spelling)].map((byte) => byte.toString(16)).join(" ");
      expect(shown).not.toContain(hex);
    }
    expect(failure.cause).toMatchObject({ code: "HPE_INVALID_CONSTANT" });
  });

  it("by sending an endless head fails the attempt", async () => {
    const url = await rawServer((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n");
        const pour = (): void => {
          while (!socket.destroyed && socket.write(`x-more: ${"y".repeat(8_000)}\r\n`));
        };
        socket.on("drain", pour);
        pour();
      });
    });
    expect(await failureOf(send(url))).toMatchObject({
      retryable: true,
      cause: { code: "HPE_HEADER_OVERFLOW" },
    });
  });

  it("by switching to another protocol fails the attempt", async () => {
    const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    const url = await rawServer((socket) => socket.once("data", () => socket.write(head)));
    expect(await failureOf(send(url))).toMatchObject({ retryable: true });
  });

  it("by ending its answer early changes nothing: the status counts", async () => {
    let requests = 0;
    const url = await rawServer((socket) => {
      socket.once("data", () => {
        requests++;
        socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
      });
    });
    await expect(send(url)).resolves.toBeUndefined();
    expect(requests).toBe(1);
  });

  it("by being unreachable fails the attempt", async () => {
    const gone = await Receiver.start();
    const { url } = gone;
    await gone[Symbol.asyncDispose]();
    const failure = await failureOf(send(url));
    expect(failure).toMatchObject({ retryable: true, cause: { code: "ECONNREFUSED" } });
    expect(failure.message).not.toContain("/hook");
  });

  it("with an untrusted certificate receives nothing", async () => {
    const { certFile, keyFile } = await makeCertificates();
    const tls = { cert: readFileSync(certFile, "utf8"), key: readFileSync(keyFile, "utf8") };
    await using receiver = await Receiver.start(answer(204), tls);
    const failure = await failureOf(send(receiver.url, { secret: SECRET }));
    expect(failure.message).toMatch(/certificate/);
    expect(receiver.received).toEqual([]);
  });

  it("is not contacted if the timeout has already passed before the attempt", async () => {
    await using receiver = await Receiver.start();
    const reason = new DeliveryFailure("too late", { retryable: true });
    expect(await failureOf(send(receiver.url, { signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(receiver.received).toEqual([]);
  });
});
