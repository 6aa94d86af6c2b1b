// Replies that are held back while it is in doubt whether their server may still be used.
import type { Reply } from "../resp/reply.ts";
import type { PendingCommand } from "./pending-command.ts";

export class HeldReplies {
  /** The command whose answer ends the doubt; undefined: replies are handed out as they arrive. */
  #until: PendingCommand | undefined;
  readonly #held: [PendingCommand, Reply][] = [];

  get isHolding(): boolean {
    return this.#until !== undefined;
  }

  /** Holds back every reply, also to earlier commands, until this one is answered. */
  holdUntil(command: PendingCommand): void {
    this.#until = command;
  }

  /** `hand` gives a reply to its caller. What it does to the reply that ends the doubt decides about the others. */
  add(command: PendingCommand, reply: Reply, hand: (command: PendingCommand, reply: Reply) => void): void {
    if (command !== this.#until) {
      this.#held.push([command, reply]);
      return;
    }
    hand(command, reply);
    for (let next = this.#held.shift(); next !== undefined; next = this.#held.shift()) hand(...next);
    this.#until = undefined;
  }

  /** The commands whose replies were held back: they count as unanswered. */
  close(): readonly PendingCommand[] {
    return this.#held.splice(0).map(([command]) => command);
  }
}
