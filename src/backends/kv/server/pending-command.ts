// What waits for replies on a connection.
import type { Reply } from "../resp/reply.ts";

/** Told the reply, or why there is none. After a lost connection a command may still have been carried out. */
export interface Answer {
  /** Until when its caller waits; later it is not sent. Default: as long as operation_timeout. */
  readonly due?: number | undefined;
  /** Returns false where nothing of the reply is held any more; whoever says nothing holds it. */
  resolve(reply: Reply): unknown;
  reject(error: Error): void;
}

/**
 * A command on its way. V8 soon keeps objects of this kind among the old ones, where they stay for a while after they
 * have served: so it is a class, and lets go of what it refers to.
 */
export class PendingCommand {
  /** When its tick's commands left; 0 while they are waiting to. */
  sentAt = 0;
  /** Whether it reads records, which are looked at where they arrive. */
  readonly isRead: boolean;
  #answer: Answer | undefined;

  constructor(answer: Answer, isRead: boolean) {
    this.#answer = answer;
    this.isRead = isRead;
  }

  /** Whoever is told the reply; once. */
  take(): Answer {
    const answer = this.#answer as Answer;
    this.#answer = undefined;
    return answer;
  }
}

/** Tells each of those who read in one tick its part of the reply. */
export class ReadTogether implements Answer {
  #answers: readonly Answer[];

  constructor(answers: readonly Answer[]) {
    this.#answers = answers;
  }

  resolve(replies: Reply): boolean {
    const answers = this.#take();
    let isHeld = false;
    for (let at = 0; at < answers.length; at++) {
      if ((answers[at] as Answer).resolve((replies as Reply[])[at] ?? null) !== false) isHeld = true;
    }
    return isHeld;
  }

  reject(error: Error): void {
    for (const answer of this.#take()) answer.reject(error);
  }

  #take(): readonly Answer[] {
    const answers = this.#answers;
    this.#answers = [];
    return answers;
  }
}

/** What was asked for in a tick. */
export class Reads {
  readonly keys: string[] = [];
  readonly answers: Answer[] = [];
}
