// The first commands on a connection: HELLO or what stands for it in RESP2, the login and the database.
import { withDeadline } from "../../../core/resilience/with-deadline.ts";
import { notPrepared } from "../../wire/connection-error.ts";
import { nameOf, type SocketSettings } from "../../wire/socket.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { withoutPassword } from "./connection-error.ts";
import type { Login } from "./login.ts";

interface Commands {
  command(...args: string[]): Promise<Reply>;
}

export interface GreetingOptions {
  readonly database: number;
  /** Default: xcache. */
  readonly clientName?: string | undefined;
}

export interface Greeting {
  /** What the server said about itself. */
  readonly facts: ReadonlyMap<string, string>;
  /** Why the connection speaks RESP2, without pushes; undefined: it speaks RESP3. */
  readonly plain: ReplyError | undefined;
}

/** Of a server without ACL users, and where only a password is given. */
export const DEFAULT_USER = "default";

export async function greet(
  connection: Commands,
  login: Login | undefined,
  { database, clientName = "xcache" }: GreetingOptions,
): Promise<Greeting> {
  const hello = ["HELLO", "3"];
  if (login?.password !== undefined) hello.push("AUTH", login.username ?? DEFAULT_USER, login.password);
  const greeting = connection.command(...hello, "SETNAME", clientName);
  const selected = database === 0 ? undefined : connection.command("SELECT", String(database));
  try {
    const [facts] = await Promise.all([greeting, selected]);
    return { facts: factsIn(facts), plain: undefined };
  } catch (error) {
    if (!isWithoutHello(error, login)) throw error;
    const plain = withoutPassword(error, login?.password);
    return { facts: await greetPlainly(connection, login, database, clientName), plain };
  }
}

/** In RESP2. */
async function greetPlainly(
  connection: Commands,
  login: Login | undefined,
  database: number,
  clientName: string,
): Promise<Greeting["facts"]> {
  const { username, password } = login ?? {};
  // Servers older than ACL users accept a password alone.
  if (password !== undefined)
    await connection.command("AUTH", ...(username === undefined ? [] : [username]), password);
  const [, , id] = await Promise.all([
    database === 0 ? undefined : connection.command("SELECT", String(database)),
    connection.command("CLIENT", "SETNAME", clientName).catch(noneIfRefused),
    connection.command("CLIENT", "ID").catch(noneIfRefused),
  ]);
  return typeof id === "number" ? new Map([["id", String(id)]]) : new Map();
}

/** What is configured, or what its function returns within connect_timeout. */
export async function inTime<T>(
  given: T | (() => Promise<T>) | undefined,
  { endpoint, clock, connectTimeoutMs, background = false }: Omit<SocketSettings, "tls">,
  signal: AbortSignal | undefined,
): Promise<T | undefined> {
  if (typeof given !== "function") return given;
  const late = (): never => {
    throw notPrepared(nameOf(endpoint), connectTimeoutMs);
  };
  const work = (given as () => Promise<T>)();
  const options = { holdsProcess: !background };
  return unlessAborted(withDeadline(clock, connectTimeoutMs, work, late, options), signal);
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** The reply to HELLO: a map, as a list of names and values. */
export function factsIn(facts: Reply): ReadonlyMap<string, string> {
  const greeting = new Map<string, string>();
  if (Array.isArray(facts))
    for (let at = 0; at + 1 < facts.length; at += 2) greeting.set(String(facts[at]), String(facts[at + 1]));
  return greeting;
}

/** The server is older than RESP3, or HELLO was renamed. */
const isWithoutHello = (error: unknown, login: Login | undefined): error is ReplyError =>
  error instanceof ReplyError &&
  (error.code === "NOPROTO" ||
    /unknown command .?HELLO/i.test(error.message) ||
    // Valkey 9 does not say before a login that a command is unknown; a HELLO that it knows logs in.
    (error.code === "NOAUTH" && login?.password !== undefined));

function noneIfRefused(error: unknown): undefined {
  if (!(error instanceof ReplyError)) throw error;
}
