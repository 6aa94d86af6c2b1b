// One connection to one server: pipelined commands, pushes in their place among the replies, a deadline on what was sent.
import { connect as connectPlain, isIP, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import type { Clock, Timer } from "../../core/clock.ts";
import { ConnectionError, OperationTimeoutError, type XCacheError } from "../../core/errors.ts";
import { type Reply, ReplyError, RespReader } from "./resp-reader.ts";
import { type Argument, RespWriter } from "./resp-writer.ts";

export type Endpoint = { readonly host: string; readonly port: number } | { readonly path: string };

export interface Login {
  readonly username: string | undefined;
  readonly password: string | undefined;
}

export interface ConnectionSettings extends Login {
  readonly endpoint: Endpoint;
  /** Undefined: no TLS. */
  readonly tls: ConnectionOptions | undefined;
  readonly database: number;
  readonly clock: Clock;
  readonly connectTimeoutMs: number;
  readonly operationTimeoutMs: number;
  /** Whether keys of several slots may be read by one command; a cluster refuses that. */
  readonly readsTogether: boolean;
  /** Never keeps the process alive, not even while an answer is awaited. Default: false. */
  readonly background?: boolean;
}

export interface ConnectionListener {
  /** A push, in its place among the replies. */
  pushed(push: readonly Reply[]): void;
  /** Once, after everything pending was rejected. */
  closed(error: XCacheError): void;
  /** Ends the connection, made or in the making, with an XCacheError as its reason. */
  readonly signal?: AbortSignal;
}

/** Told the reply, or why there is none. After a lost connection a command may still have been carried out. */
export interface Answer {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

interface Pending {
  readonly answer: Answer;
  /** When its tick's commands left; 0 while they are waiting to. */
  sentAt: number;
}

/** Keys a single MGET asks for at most, so that none keeps the server busy for long. */
const MOST_READ_TOGETHER = 512;

let connections = 0;

export class Connection {
  /** No other connection of this process ever has the same; never 0. */
  readonly id = ++connections;
  /** When the latest command that was answered had been sent: what the server pushed before that has arrived. */
  provenAt = 0;
  readonly #settings: ConnectionSettings;
  readonly #listener: ConnectionListener;
  readonly #writer = new RespWriter();
  readonly #socket: Socket;
  #pending: Pending[] = [];
  #answered = 0;
  #unsent = 0;
  #readKeys: Argument[] = [];
  #readAnswers: Answer[] = [];
  #flushing = false;
  #watch: Timer | undefined;
  #closed: XCacheError | undefined;

  private constructor(settings: ConnectionSettings, listener: ConnectionListener, socket: Socket) {
    this.#settings = settings;
    this.#listener = listener;
    this.#socket = socket;
    const reader = new RespReader({
      reply: (reply) => this.#reply(reply),
      push: (push) => listener.pushed(push),
    });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 5_000);
    socket.on("data", (chunk: Buffer) => {
      try {
        reader.feed(chunk);
      } catch (error) {
        this.destroy(notResp(settings.endpoint, error));
      }
    });
    socket.on("error", (error) => this.destroy(lost(settings.endpoint, error)));
    socket.on("close", () => this.destroy(lost(settings.endpoint)));
    listener.signal?.addEventListener("abort", () => this.destroy(listener.signal?.reason), { once: true });
  }

  /** Connects, logs in and selects the database. Rejects with ConnectionError or OperationTimeoutError. */
  static async open(settings: ConnectionSettings, listener: ConnectionListener): Promise<Connection> {
    const socket = await connected(settings, listener.signal);
    const connection = new Connection(settings, listener, socket);
    try {
      await connection.#greet();
      return connection;
    } catch (thrown) {
      const error = refused(settings.endpoint, thrown);
      connection.destroy(error);
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.#closed === undefined;
  }

  get endpoint(): Endpoint {
    return this.#settings.endpoint;
  }

  /** How many commands wait for their replies. */
  get inFlight(): number {
    return this.#pending.length - this.#answered;
  }

  /** Leaves with the other commands of this tick, in order. */
  send(args: readonly Argument[], answer: Answer): void {
    if (this.#closed !== undefined) {
      answer.reject(this.#closed);
      return;
    }
    this.#append(args, answer);
    this.#flushSoon();
  }

  /** GET, after the other commands of this tick and together with its other reads. The bytes are a view: copy what is kept. */
  read(key: Argument, answer: Answer): void {
    if (this.#closed !== undefined) {
      answer.reject(this.#closed);
      return;
    }
    this.#readKeys.push(key);
    this.#readAnswers.push(answer);
    this.#flushSoon();
  }

  /** A command that is answered by pushes instead of a reply, such as SUBSCRIBE. What goes wrong is not told. */
  tell(args: readonly Argument[]): void {
    if (this.#closed !== undefined) return;
    this.#writer.append(args);
    this.#flushSoon();
  }

  command(...args: Argument[]): Promise<Reply> {
    return new Promise((resolve, reject) => this.send(args, { resolve, reject }));
  }

  /** Whatever was sent may still be carried out: only a closed socket makes sure that nothing follows it. */
  destroy(reason: XCacheError): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#watch?.cancel();
    this.#socket.destroy();
    const answers = [
      ...this.#pending.slice(this.#answered).map(({ answer }) => answer),
      ...this.#readAnswers.splice(0),
    ];
    this.#pending = [];
    this.#answered = 0;
    for (const answer of answers) answer.reject(reason);
    this.#listener.closed(reason);
  }

  async #greet(): Promise<void> {
    const { username, password, database } = this.#settings;
    const hello = ["HELLO", "3"];
    if (password !== undefined) hello.push("AUTH", username ?? "default", password);
    const greeting = this.command(...hello, "SETNAME", "xcache");
    const selected = database === 0 ? undefined : this.command("SELECT", String(database));
    await Promise.all([greeting, selected]);
  }

  #append(args: readonly Argument[], answer: Answer): void {
    this.#writer.append(args);
    this.#pending.push({ answer, sentAt: 0 });
    this.#unsent++;
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    process.nextTick(() => this.#flush());
  }

  #flush(): void {
    this.#flushing = false;
    if (this.#closed !== undefined) return;
    if (this.#readKeys.length > 0) this.#appendReads();
    const now = this.#settings.clock.now();
    for (let at = this.#pending.length - this.#unsent; at < this.#pending.length; at++) {
      (this.#pending[at] as Pending).sentAt = now;
    }
    this.#unsent = 0;
    // Only somebody who waits for a reply keeps the process alive.
    if (this.inFlight > 0 && !this.#settings.background) this.#socket.ref();
    this.#socket.write(this.#writer.take());
    if (this.#watch === undefined) this.#arm();
  }

  #appendReads(): void {
    const keys = this.#readKeys;
    const answers = this.#readAnswers;
    this.#readKeys = [];
    this.#readAnswers = [];
    if (!this.#settings.readsTogether || keys.length === 1) {
      for (const [at, key] of keys.entries()) this.#append(["GET", key], answers[at] as Answer);
      return;
    }
    for (let from = 0; from < keys.length; from += MOST_READ_TOGETHER) {
      const asked = answers.slice(from, from + MOST_READ_TOGETHER);
      this.#append(["MGET", ...keys.slice(from, from + MOST_READ_TOGETHER)], {
        resolve: (replies) => {
          for (let at = 0; at < asked.length; at++)
            (asked[at] as Answer).resolve((replies as Reply[])[at] ?? null);
        },
        reject: (error) => {
          for (const answer of asked) answer.reject(error);
        },
      });
    }
  }

  #reply(reply: Reply): void {
    const next = this.#pending[this.#answered];
    if (next === undefined) throw new Error("the server sent a reply that nobody asked for");
    this.#pending[this.#answered++] = undefined as never;
    this.provenAt = next.sentAt;
    if (this.#answered === this.#pending.length) {
      this.#pending = [];
      this.#answered = 0;
      this.#socket.unref();
    } else if (this.#answered > 1_024) {
      this.#pending = this.#pending.slice(this.#answered);
      this.#answered = 0;
    }
    if (reply instanceof ReplyError) next.answer.reject(reply);
    else next.answer.resolve(reply);
  }

  /** One timer for the oldest command, looked at again only when it fires: replies cost no timer of their own. */
  #arm(): void {
    this.#watch = undefined;
    const oldest = this.#pending[this.#answered];
    if (oldest === undefined) return;
    const { clock, operationTimeoutMs } = this.#settings;
    const wait = oldest.sentAt + operationTimeoutMs - clock.now();
    // A process that was busy or stopped first looks at what has arrived meanwhile.
    if (wait > 0) this.#watch = clock.after(wait, () => this.#arm());
    else setImmediate(() => this.#judge(oldest));
  }

  #judge(late: Pending): void {
    if (this.#closed !== undefined) return;
    if (this.#pending[this.#answered] !== late) {
      if (this.#watch === undefined) this.#arm();
      return;
    }
    const { operationTimeoutMs, endpoint } = this.#settings;
    this.destroy(
      new OperationTimeoutError(
        `${nameOf(endpoint)} did not answer within operation_timeout (${operationTimeoutMs / 1000} s)`,
      ),
    );
  }
}

export function nameOf(endpoint: Endpoint): string {
  if ("path" in endpoint) return endpoint.path;
  return `${endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
}

function connected(settings: ConnectionSettings, signal: AbortSignal | undefined): Promise<Socket> {
  const { endpoint, tls, clock, connectTimeoutMs } = settings;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const socket = tls === undefined ? connectPlain(endpoint) : connectTls(tlsTo(endpoint, tls));
    if (settings.background) socket.unref();
    const abort = (): void => settle(signal?.reason);
    const fail = (error: Error): void => settle(lost(endpoint, error));
    const end = (): void => settle(lost(endpoint));
    const settle = (error?: XCacheError): void => {
      timer.cancel();
      signal?.removeEventListener("abort", abort);
      socket.off("close", end);
      if (error === undefined) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(error);
    };
    const timer = clock.after(connectTimeoutMs, () =>
      settle(
        new OperationTimeoutError(
          `${nameOf(endpoint)} did not accept a connection within connect_timeout (${connectTimeoutMs / 1000} s)`,
        ),
      ),
    );
    signal?.addEventListener("abort", abort);
    socket.once(tls === undefined ? "connect" : "secureConnect", () => settle());
    // It stays: an error must never be without a listener.
    socket.on("error", fail);
    socket.on("close", end);
  });
}

/** The name of the server is sent, unless it is an address, for which TLS has no place. */
function tlsTo(endpoint: Endpoint, tls: ConnectionOptions): ConnectionOptions {
  const name = "host" in endpoint && isIP(endpoint.host) === 0 ? { servername: endpoint.host } : {};
  return { ...endpoint, ...name, ...tls };
}

function lost(endpoint: Endpoint, cause?: Error): ConnectionError {
  if (cause === undefined)
    return new ConnectionError(`${nameOf(endpoint)} cannot be reached: it closed the connection`);
  const hint = HINTS[(cause as NodeJS.ErrnoException).code ?? ""];
  return new ConnectionError(
    `${nameOf(endpoint)} cannot be reached: ${cause.message || String(cause)}`,
    hint === undefined ? { cause } : { cause, hint },
  );
}

function notResp(endpoint: Endpoint, cause: unknown): ConnectionError {
  return new ConnectionError(`what answers at ${nameOf(endpoint)} does not speak the protocol of Redis`, {
    cause,
    hint: "Check the address and whether it needs TLS (rediss://).",
  });
}

/** The server's own words hold no secrets: it never repeats a password. */
function refused(endpoint: Endpoint, thrown: unknown): XCacheError {
  if (!(thrown instanceof ReplyError)) return thrown as XCacheError;
  const hint = HINTS[thrown.code] ?? REFUSALS.find(([words]) => words.test(thrown.message))?.[1];
  return new ConnectionError(
    `${nameOf(endpoint)} refused the connection: ${thrown.message}`,
    hint === undefined ? { cause: thrown } : { cause: thrown, hint },
  );
}

const LOGIN = "Check the user and password in kv_url.";
const AUTHORITY = "Name the authority that signed the server's certificate with tls_ca_file.";
const NEWER = "xcache needs RESP3: Redis 6 or later, or any Valkey.";

/** What to do, by the code of a system error, of TLS or of the server. */
const HINTS: Readonly<Record<string, string>> = {
  WRONGPASS: LOGIN,
  NOAUTH: LOGIN,
  NOPERM: LOGIN,
  NOPROTO: NEWER,
  ERR_SSL_WRONG_VERSION_NUMBER: "The server does not speak TLS there: use redis:// or its port for TLS.",
  ERR_TLS_CERT_ALTNAME_INVALID:
    "Use a host name that the server's certificate carries, or give it as tls_server_name.",
  SELF_SIGNED_CERT_IN_CHAIN: AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: AUTHORITY,
};

const REFUSALS: readonly (readonly [words: RegExp, hint: string])[] = [
  [/unknown command .?HELLO/i, NEWER],
  [/DB index/i, "Check the database number in kv_url; a server has 16 unless it is told otherwise."],
];
