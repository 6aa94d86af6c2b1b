// What a new connection asks of its server before it is used: tracking, facts, time, and what its user may not do.
import type { Clock } from "../../../core/clock.ts";
import { ReplyError } from "../resp/reply.ts";
import type { Connection } from "./connection.ts";
import { notReady } from "./connection-error.ts";
import { probe, type Restricted, type Restrictions } from "./restrictions.ts";
import { type ClockReading, clockReading } from "./server-clock.ts";
import { readServerInfo, type ServerInfo } from "./server-info.ts";

export interface PreparationOptions {
  readonly clock: Clock;
  readonly restrictions: Restrictions;
  /** Whether the server is to track all reads but those declined. */
  readonly watchesMost: boolean;
  /** Whether to find out which commands are refused. */
  readonly probes: boolean;
}

export interface Prepared {
  readonly facts: ServerInfo;
  readonly time: ClockReading | undefined;
}

export async function prepare(connection: Connection, options: PreparationOptions): Promise<Prepared> {
  const { clock, restrictions, watchesMost, probes } = options;
  const sentAt = clock.now();
  const answers = await Promise.allSettled([
    track(connection, watchesMost),
    connection.command("INFO"),
    connection.command("TIME").then((answer) => clockReading(answer, sentAt, clock.now())),
    ...(probes ? [probe(connection, restrictions)] : []),
  ]);
  if (connection.closedBy !== undefined) throw connection.closedBy;
  const unready = answers.find(isUnready);
  if (unready !== undefined) throw notReady(connection.name, unready.reason);
  const [tracking, info, time] = answers;
  connection.isTracked = tracking.status === "fulfilled";
  restrict(restrictions, connection.plain === undefined ? "CLIENT TRACKING" : "HELLO", tracking);
  restrict(restrictions, "INFO", info);
  restrict(restrictions, "TIME", time);
  const facts = readServerInfo(info.status === "fulfilled" ? info.value : undefined, connection.greeting);
  if (info.status === "fulfilled" && facts.runId === undefined)
    restrictions.add("INFO", new ReplyError("a reply to INFO without a run_id"));
  return { facts, time: time.status === "fulfilled" ? time.value : undefined };
}

function restrict(restrictions: Restrictions, what: Restricted, answer: PromiseSettledResult<unknown>): void {
  if (answer.status === "rejected") restrictions.add(what, answer.reason);
  else restrictions.remove(what);
}

/** The server tracks only the reads that are kept here: tracking costs it memory, and every change a push. */
async function track(connection: Connection, watchesMost: boolean): Promise<void> {
  if (connection.plain !== undefined) throw connection.plain;
  const [mode, word] = watchesMost ? ["OPTOUT", "NO"] : ["OPTIN", "YES"];
  const answering = Promise.allSettled([
    connection.command("CLIENT", "TRACKING", "ON", mode),
    connection.command("CLIENT", "CACHING", word),
  ]);
  // Uses up CLIENT CACHING, which applies to the next command, before a read is sent.
  connection.send(["PING"], IGNORED);
  const answers = await answering;
  // A server that is not ready may support these modes: its refusal proves nothing.
  const unready = answers.find(isUnready);
  if (unready !== undefined) throw unready.reason;
  if (answers.every(({ status }) => status === "fulfilled")) {
    connection.watching = watchesMost ? "out" : "in";
    return;
  }
  await connection.command("CLIENT", "TRACKING", "OFF");
  await connection.command("CLIENT", "TRACKING", "ON");
}

const IGNORED = { resolve: () => {}, reject: () => {} };

/** Errors of a server that is not ready: they say nothing about what it supports. */
const UNREADY = new Set(["LOADING", "MASTERDOWN", "BUSY"]);

const isUnready = (answer: PromiseSettledResult<unknown>): answer is PromiseRejectedResult =>
  answer.status === "rejected" && answer.reason instanceof ReplyError && UNREADY.has(answer.reason.code);

/**
 * Has the server end lost connections before this one is used: bytes of theirs that are still on the way, or in the server's
 * own buffer, would be executed after changes made later. Those ended are removed from the list.
 */
export async function endFormer(
  connection: Connection,
  former: Connection[],
  restrictions: Restrictions,
): Promise<void> {
  const ended = [...former];
  const onServer = ended.filter(({ runId }) => runId === undefined || runId === connection.runId);
  await Promise.all(onServer.map((lost) => endOn(connection, lost, restrictions)));
  // Those on another server ended with it, or are refused there: it is no longer the master.
  former.splice(0, ended.length);
}

async function endOn(
  connection: Connection,
  { clientId, runId }: Connection,
  restrictions: Restrictions,
): Promise<void> {
  try {
    // The number means another client on another server.
    if (clientId === undefined || runId === undefined)
      throw new ReplyError("NOPERM INFO is needed to tell that it is the same server");
    await connection.command("CLIENT", "KILL", "ID", String(clientId));
  } catch (error) {
    if (!(error instanceof ReplyError)) throw error;
    restrictions.add("CLIENT KILL", error);
  }
}
