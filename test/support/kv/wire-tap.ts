// What this process sends to servers, write by write, as the commands in each.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
import { RespReader } from "../../../src/backends/kv/resp/reader.ts";
import type { Reply } from "../../../src/backends/kv/resp/reply.ts";

const OPENED = "net.client.socket";

/** One write to one socket. */
export interface Sent {
  /** Of the server. */
  readonly port: number | undefined;
  readonly commands: readonly (readonly string[])[];
}

/** Listens to the sockets that are opened while it exists. */
export class WireTap implements Disposable {
  /** May be emptied at any time. */
  readonly sent: Sent[] = [];
  /** Called with each command just before it is sent. */
  hear: (command: readonly string[]) => void = () => {};

  constructor() {
    subscribe(OPENED, this.#opened);
  }

  [Symbol.dispose](): void {
    unsubscribe(OPENED, this.#opened);
  }

  readonly #opened = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket };
    // Until then Node puts its own function in the place of any other.
    socket.once("connect", () => this.#tap(socket));
  };

  #tap(socket: Socket): void {
    const write = socket.write.bind(socket) as (bytes: Buffer, ...rest: unknown[]) => boolean;
    const tapped = (bytes: Buffer, ...rest: unknown[]): boolean => {
      const commands = commandsIn(bytes);
      for (const command of commands) this.hear(command);
      this.sent.push({ port: socket.remotePort, commands });
      return write(bytes, ...rest);
    };
    Object.assign(socket, { write: tapped });
  }
}

/** A command is spelled like the reply that is a list. */
function commandsIn(bytes: Buffer): readonly (readonly string[])[] {
  const commands: string[][] = [];
  const reader = new RespReader({
    reply: (reply) => commands.push((reply as readonly Reply[]).map(String)),
    push: () => {},
  });
  reader.feed(bytes);
  return commands;
}
