// Calls that wait for something else than a reply: a pause, a topology, a connection.
import { MessageChannel, type MessagePort } from "node:worker_threads";
import type { ClusterCall } from "./call.ts";

export class ParkedCalls {
  readonly #calls = new Set<ClusterCall>();
  /** No socket or timer keeps the process alive meanwhile, but somebody waits for these; an open port does. */
  #awake: MessagePort | undefined;

  add(call: ClusterCall): void {
    this.#calls.add(call);
    if (this.#awake !== undefined) return;
    this.#awake = new MessageChannel().port1;
    this.#awake.ref();
  }

  delete(call: ClusterCall): void {
    this.#calls.delete(call);
    if (this.#calls.size > 0) return;
    this.#awake?.close();
    this.#awake = undefined;
  }

  end(reason: Error): void {
    for (const call of [...this.#calls]) call.fail(reason);
  }
}
