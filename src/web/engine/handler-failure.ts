// The handler failed while a stored response may answer in its place; the cache then looks whether it is still there.
import type { Reply } from "../message/exchange.ts";

export class HandlerFailure extends Error {
  /** The request whose handler it was. */
  readonly visit: unknown;
  /** What it said; undefined: it threw. */
  readonly reply: Reply | undefined;

  constructor(visit: unknown, reply: Reply | undefined, cause?: unknown) {
    const what = reply === undefined ? "threw an error" : `answered with status ${reply.status}`;
    super(`the handler ${what}`, { cause });
    this.name = "HandlerFailure";
    this.visit = visit;
    this.reply = reply;
  }
}
