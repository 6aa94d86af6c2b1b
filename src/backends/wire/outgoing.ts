// Writes to a socket, large data in pieces: each piece that the socket has taken shows that the transfer goes on.
import type { Socket } from "node:net";

const PIECE = 256 * 1024;

export class Outgoing {
  readonly #socket: Socket;
  readonly #moved: () => void;
  #waiting: Buffer[] = [];
  /** The present piece is of this one, from this byte on. */
  #first = 0;
  #from = 0;

  /** `moved`: the socket has taken a piece. */
  constructor(socket: Socket, moved: () => void) {
    this.#socket = socket;
    this.#moved = moved;
  }

  write(bytes: Buffer): void {
    if (this.#waiting.length === 0 && bytes.length <= PIECE) {
      this.#socket.write(bytes);
      return;
    }
    const isIdle = this.#waiting.length === 0;
    this.#waiting.push(bytes);
    if (isIdle) this.#next();
  }

  #next(): void {
    const first = this.#waiting[this.#first];
    if (first === undefined || this.#socket.destroyed) return;
    this.#socket.write(first.subarray(this.#from, this.#from + PIECE), this.#taken);
  }

  readonly #taken = (error?: Error | null): void => {
    if (error) return;
    this.#from += PIECE;
    if (this.#from >= (this.#waiting[this.#first] as Buffer).length) {
      this.#waiting[this.#first++] = undefined as never;
      this.#from = 0;
    }
    if (this.#first === this.#waiting.length) {
      this.#waiting = [];
      this.#first = 0;
    }
    this.#moved();
    this.#next();
  };
}
