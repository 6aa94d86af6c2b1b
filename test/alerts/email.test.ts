import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { inspect } from "node:util";
import fc from "fast-check";
import type { SMTPServerOptions } from "smtp-server";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { DeliveryFailure } from "../../src/alerts/destination.ts";
import { EmailDestination } from "../../src/alerts/email.ts";
import { loadMailer, type Mailer } from "../../src/alerts/mailer.ts";
import { AlertManager } from "../../src/alerts/manager.ts";
import type { AlertNotification, Outgoing } from "../../src/alerts/notification.ts";
import { requireSmtp, type SmtpOptions } from "../../src/alerts/smtp.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { type Certificates, makeCertificates } from "../support/certificate.ts";
import { until } from "../support/until.ts";
import { Figures } from "./figures.ts";
import { MailServer, reply } from "./mail-server.ts";
import { answer, Receiver } from "./receiver.ts";

const RECIPIENTS = ["ops@example.com", "lead@example.com"];

function outgoing(data: Partial<AlertNotification["data"]> = {}): Outgoing {
  const status = data.status ?? "firing";
  return {
    id: `msg_${status}_${data.repeat ?? 0}`,
    notification: {
      type: `alert.${status}`,
      timestamp: "2026-01-01T00:00:30.000Z",
      data: {
        name: "Trefferquote zu niedrig ☂",
        status,
        metric: "hit_rate",
        comparison: "less_than",
        threshold: 0.7,
        value: 0.5,
        since: "2026-01-01T00:00:00.000Z",
        repeat: 0,
        incidentId: "msg_firing_0",
        instance: "web-1",
        summary: "hit_rate is less than 0.7 (70 %): it is 0.5 (50 %)",
        ...data,
      },
    },
  };
}

function destinationAt(
  port: number,
  options: Partial<SmtpOptions> = {},
  recipients = RECIPIENTS,
): EmailDestination {
  const smtp = { host: "127.0.0.1", port, from: "Cache alerts <alerts@example.org>", ...options };
  return new EmailDestination(requireSmtp(smtp), recipients, loadMailer());
}

const never = (): AbortSignal => new AbortController().signal;

async function failureOf(sent: Promise<void>): Promise<DeliveryFailure> {
  const failure: unknown = await sent.then(
    () => "delivered",
    (error: unknown) => error,
  );
  expect(failure).toBeInstanceOf(DeliveryFailure);
  return failure as DeliveryFailure;
}

describe("an email", () => {
  it("states what fires, to all recipients in one message", async () => {
    await using server = await MailServer.start();
    await destinationAt(server.port).send(outgoing(), never());
    expect(server.letters).toHaveLength(1);
    const [letter] = server.letters;
    expect(letter).toMatchObject({ from: "alerts@example.org", to: RECIPIENTS, secure: false });
    expect(letter?.email).toMatchObject({
      from: { name: "Cache alerts", address: "alerts@example.org" },
      to: RECIPIENTS.map((address) => ({ address })),
      subject: "[FIRING] Trefferquote zu niedrig ☂",
      messageId: "<msg_firing_0@example.org>",
      date: "2026-01-01T00:00:30.000Z",
    });
    expect(letter?.email.headers).toContainEqual(
      expect.objectContaining({ key: "auto-submitted", value: "auto-generated" }),
    );
    expect(letter?.email.html).toBeUndefined();
    expect(letter?.email.text?.split("\n").slice(0, 10)).toEqual([
      "hit_rate is less than 0.7 (70 %): it is 0.5 (50 %).",
      "",
      "alert:      Trefferquote zu niedrig ☂",
      "status:     firing",
      "condition:  hit_rate less_than 0.7",
      "value:      0.5",
      "since:      2026-01-01T00:00:00.000Z",
      "notified:   2026-01-01T00:00:30.000Z",
      "instance:   web-1",
      "incident:   msg_firing_0",
    ]);
  });

  it("threads under the first one of the same incident", async () => {
    await using server = await MailServer.start();
    const destination = destinationAt(server.port);
    for (const data of [{ repeat: 1 }, { status: "resolved", repeat: 1 }] as const) {
      await destination.send(outgoing(data), never());
    }
    expect(server.letters.map(({ email }) => [email.subject, email.messageId, email.inReplyTo])).toEqual([
      [
        "[FIRING] Trefferquote zu niedrig ☂ (still)",
        "<msg_firing_1@example.org>",
        "<msg_firing_0@example.org>",
      ],
      ["[RESOLVED] Trefferquote zu niedrig ☂", "<msg_resolved_1@example.org>", "<msg_firing_0@example.org>"],
    ]);
    expect(server.letters[0]?.email.text).toContain("repeat:     1");
  });

  it("gains no header, line or recipient, whatever the names of the alert and the process", async () => {
    await using server = await MailServer.start();
    const destination = destinationAt(server.port);
    const nasty = fc.array(
      fc.constantFrom(
        "\r\n",
        "\n",
        "\r",
        "\0",
        "\u2028",
        "\u202e",
        "Bcc: x@evil.example",
        ": ",
        ".",
        "<a@b>",
        "=?utf-8?q?",
        "ü",
        " ",
      ),
      { minLength: 1, maxLength: 12 },
    );
    const names = ["a\r\nBcc: x@evil.example\r\n\r\nbody", "a\r\n.\r\nMAIL FROM:<x@evil.example>\r\n"];
    const property = fc.asyncProperty(nasty, async (parts) => {
      server.letters.length = 0;
      const name = `x${parts.join("")}x`;
      await destination.send(outgoing({ name, instance: name }), never());
      expect(server.letters).toHaveLength(1);
      const { email, to } = server.letters[0]!;
      expect(to).toEqual(RECIPIENTS);
      expect(email.headers.map(({ key }) => key).sort()).toEqual(EVERY_HEADER);
      expect(email.subject).toMatch(/^\[FIRING\] x[^\r\n\0\u2028\u202e]*x$/);
      expect(email.text?.trimEnd().split("\n")).toHaveLength(10);
    });
    await fc.assert(property, { numRuns: 12, examples: names.map((name) => [[name]]) });
  });
});

const EVERY_HEADER = [
  "auto-submitted",
  "content-transfer-encoding",
  "content-type",
  "date",
  "from",
  "message-id",
  "mime-version",
  "subject",
  "to",
];

describe("through a mail server that requires it, an email is sent", () => {
  let certificates: Certificates;
  let tls: { readonly cert: string; readonly key: string };
  beforeAll(async () => {
    certificates = await makeCertificates();
    tls = {
      cert: readFileSync(certificates.certFile, "utf8"),
      key: readFileSync(certificates.keyFile, "utf8"),
    };
  });

  const AUTH = { user: "sender", pass: "Zq9 p@ss" };
  const login: SMTPServerOptions = {
    disabledCommands: [],
    authOptional: false,
    onAuth: ({ username, password }, _, done) => {
      if (username === AUTH.user && password === AUTH.pass) done(null, { user: AUTH.user });
      // Like some servers, it echoes what it received.
      else done(new Error(`bad: ${password} ${Buffer.from(`${password}`).toString("base64")}`));
    },
  };

  it("with STARTTLS and a login", async () => {
    await using server = await MailServer.start({ ...login, ...tls });
    const options = { auth: AUTH, tls: { ca: certificates.ca } };
    await destinationAt(server.port, options).send(outgoing(), never());
    expect(server.letters).toMatchObject([{ secure: true, user: "sender", to: RECIPIENTS }]);
  });

  it("with TLS from the first byte", async () => {
    await using server = await MailServer.start({ ...login, ...tls, secure: true });
    const options = { auth: AUTH, secure: true, tls: { ca: certificates.ca } };
    await destinationAt(server.port, options).send(outgoing(), never());
    expect(server.letters).toMatchObject([{ secure: true, user: "sender" }]);
  });

  it("only if the server's certificate is trusted", async () => {
    await using server = await MailServer.start({ ...login, ...tls });
    const failure = await failureOf(destinationAt(server.port, { auth: AUTH }).send(outgoing(), never()));
    expect(failure.message).toMatch(/certificate/);
    expect(server.letters).toEqual([]);
  });

  it("only if the password would not travel in the clear, unless that is allowed", async () => {
    const inTheClear = { ...login, disabledCommands: ["STARTTLS"], allowInsecureAuth: true };
    await using server = await MailServer.start(inTheClear);
    const failure = await failureOf(destinationAt(server.port, { auth: AUTH }).send(outgoing(), never()));
    expect(failure.message).toMatch(/STARTTLS/i);
    expect(server.letters).toEqual([]);
    await destinationAt(server.port, { auth: AUTH, requireTls: false }).send(outgoing(), never());
    expect(server.letters).toMatchObject([{ secure: false, user: "sender" }]);
  });

  it("only with the right password: a wrong one appears in no message and is not retried", async () => {
    await using server = await MailServer.start({ ...login, ...tls });
    const auth = { user: "sender", pass: "Zq9wrong" };
    const options = { auth, tls: { ca: certificates.ca } };
    const failure = await failureOf(destinationAt(server.port, options).send(outgoing(), never()));
    expect(failure.retryable).toBe(false);
    expect(failure.message).toContain("bad: *** ***");
    const shown = inspect(failure, { depth: 10, showHidden: true });
    expect(shown).not.toContain("Zq9");
    expect(shown).not.toContain(Buffer.from("Zq9wrong").toString("base64"));
  });
});

describe("recipients", () => {
  it("that the server defers are retried, and only those", async () => {
    let isBusy = true;
    await using server = await MailServer.start({
      onRcptTo: ({ address }, _, done) =>
        done(isBusy && address.startsWith("lead") ? reply(451, "later") : null),
    });
    const destination = destinationAt(server.port);
    const message = outgoing();
    const failure = await failureOf(destination.send(message, never()));
    expect(failure.retryable).toBe(true);
    expect(failure.message).toMatch(/^1 of 2 recipients rejected: .*451 later/);
    isBusy = false;
    await destination.send(message, never());
    expect(server.letters.map(({ to }) => to)).toEqual([["ops@example.com"], ["lead@example.com"]]);
    // Each sees the other recipients, and it is the same message.
    expect(server.letters[1]?.email.to).toMatchObject(RECIPIENTS.map((address) => ({ address })));
    expect(server.letters[0]?.email.messageId).toBe(server.letters[1]?.email.messageId);
  });

  it("that the server rejects permanently are not retried; the others receive the message", async () => {
    await using server = await MailServer.start({
      onRcptTo: ({ address }, _, done) => done(address.startsWith("lead") ? reply(550, "unknown") : null),
    });
    const failure = await failureOf(destinationAt(server.port).send(outgoing(), never()));
    expect(failure).toMatchObject({ retryable: false, message: expect.stringContaining("550 unknown") });
    expect(server.letters).toMatchObject([{ to: ["ops@example.com"] }]);
  });

  it.each([
    [451, true],
    [550, false],
  ])("that are all answered %d are retryable: %s", async (code, retryable) => {
    await using server = await MailServer.start({ onRcptTo: (_address, _, done) => done(reply(code, "no")) });
    const failure = await failureOf(destinationAt(server.port).send(outgoing(), never()));
    expect(failure).toMatchObject({
      retryable,
      message: expect.stringMatching(/^2 of 2 recipients rejected/),
    });
  });
});

describe("a mail server that misbehaves", () => {
  const sockets = new Set<Socket>();
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
  });

  /** A server that never ends a connection itself. */
  async function talking(
    talk: (socket: Socket) => void,
  ): Promise<{ port: number; connected: Promise<Socket> }> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on("error", () => {});
      talk(socket);
    });
    server.listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const connected = once(server, "connection").then(([socket]) => socket as Socket);
    return { port: (server.address() as AddressInfo).port, connected };
  }

  it.each(["", "220 hello\r\n", "220-"])(
    "after %j holds no resources after the timeout",
    async (greeting) => {
      const { port, connected } = await talking((socket) => socket.write(greeting));
      const attempt = new AbortController();
      const sent = failureOf(destinationAt(port).send(outgoing(), attempt.signal));
      const socket = await connected;
      const reason = new DeliveryFailure("too long", { retryable: true });
      attempt.abort(reason);
      expect(await sent).toBe(reason);
      await until(() => socket.closed || !socket.write("220-\r\n"), { what: "the connection closed" });
    },
  );

  it("by keeping the connection of an accepted message open keeps only its own end open", async () => {
    const { port, connected } = await talking((socket) => {
      socket.write("220 hello\r\n");
      let isData = false;
      socket.on("data", (chunk) => {
        const text = chunk.toString();
        if (isData && !text.endsWith("\r\n.\r\n")) return;
        isData = !isData && text.startsWith("DATA");
        socket.write(isData ? "354 go on\r\n" : "250 ok\r\n");
      });
    });
    await destinationAt(port).send(outgoing(), never());
    const socket = await connected;
    // Writing to a connection whose other end is closed leads nowhere.
    await until(() => socket.closed || !socket.write("250 still here\r\n"), {
      what: "the connection closed",
    });
  });

  it("is not contacted if the attempt was aborted beforehand", async () => {
    let connections = 0;
    await using server = await MailServer.start({
      onConnect: (_, done) => {
        connections++;
        done();
      },
    });
    const reason = new DeliveryFailure("too late", { retryable: true });
    const destination = destinationAt(server.port);
    expect(await failureOf(destination.send(outgoing(), AbortSignal.abort(reason)))).toBe(reason);
    // By the time this one is delivered, the first one would have connected too.
    await destination.send(outgoing(), never());
    expect(connections).toBe(1);
  });

  it("is not contacted by a mail library that connects after the abort either", async () => {
    let connections = 0;
    const { port } = await talking(() => connections++);
    const attempt = new AbortController();
    let settle: (error: Error | null) => void = () => {};
    const late = new Promise<Error | null>((resolve) => {
      settle = resolve;
    });
    const mailer: Mailer = {
      createTransport: ({ getSocket }) => ({
        sendMail: () => {
          attempt.signal.addEventListener("abort", () => setImmediate(() => getSocket({}, settle)));
          return new Promise(() => {});
        },
      }),
    };
    const smtp = requireSmtp({ host: "127.0.0.1", port, from: "alerts@example.org" });
    const sent = failureOf(new EmailDestination(smtp, RECIPIENTS, mailer).send(outgoing(), attempt.signal));
    attempt.abort(new DeliveryFailure("too long", { retryable: true }));
    await sent;
    expect(await late).toMatchObject({ message: "the attempt is over" });
    expect(connections).toBe(0);
  });

  it.each([
    [421, true],
    [554, false],
  ])("by answering the message with %d is retryable: %s", async (code, retryable) => {
    await using server = await MailServer.start({
      onData: (stream, _, done) => {
        stream.resume();
        stream.on("end", () => done(reply(code, "no")));
      },
    });
    const failure = await failureOf(destinationAt(server.port).send(outgoing(), never()));
    expect(failure).toMatchObject({ retryable, message: expect.stringContaining(`${code} no`) });
  });

  it("by being unreachable is retryable", async () => {
    const server = await MailServer.start();
    const { port } = server;
    await server[Symbol.asyncDispose]();
    const failure = await failureOf(destinationAt(port).send(outgoing(), never()));
    expect(failure).toMatchObject({ retryable: true, message: expect.stringContaining("ECONNREFUSED") });
  });
});

describe("a manager with a mail server", () => {
  it("sends email and webhooks for one alert, and for its resolution", async () => {
    await using server = await MailServer.start();
    await using receiver = await Receiver.start(answer(500));
    const figures = new Figures();
    const clock = new ManualClock();
    const errors: Error[] = [];
    const smtp = { host: "127.0.0.1", port: server.port, from: "alerts@example.org" };
    await using manager = new AlertManager(figures, { smtp, onError: (error) => errors.push(error) }, clock);
    manager.addAlert({
      ...manager.patterns()[4]!,
      emailRecipients: "ops@EXAMPLE.com",
      webhookUrl: receiver.url,
    });
    manager.start();
    for (const circuitBreakerOpen of [true, false]) {
      figures.set({ circuitBreakerOpen });
      const before = server.letters.length;
      await clock.advance(30_000);
      await until(() => manager.deliveries().delivered > before, { what: "the email" });
    }
    expect(server.letters.map(({ email, to }) => [email.subject, to])).toEqual([
      ["[FIRING] circuit_breaker_open", ["ops@example.com"]],
      ["[RESOLVED] circuit_breaker_open", ["ops@example.com"]],
    ]);
    expect(errors[0]?.message).toContain(
      `could not be delivered to webhook http://127.0.0.1:${receiver.port}`,
    );
  });
});
