// Redraws a block of lines in place on a terminal.
import { truncate } from "./display-width.ts";
import { type Stream, sizeOf } from "./output.ts";

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const CLEAR_DOWN = "\u001b[J";
const CLEAR_RIGHT = "\u001b[K";

export class Redraw {
  readonly #stream: Stream;
  #height = 0;

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  begin(): void {
    this.#stream.write(HIDE_CURSOR);
    // However the program ends, the cursor must come back.
    process.once("exit", this.#restore);
  }

  /** One write, to avoid flicker. Never more lines than fit: what has scrolled away cannot be redrawn. */
  draw(lines: readonly string[]): void {
    const { columns, rows } = sizeOf(this.#stream);
    const shown = lines.slice(0, Math.max(1, rows - 1)).map((line) => truncate(line, columns));
    const up = this.#height === 0 ? "\r" : `\r\u001b[${this.#height}A`;
    this.#stream.write(`${up}${shown.map((line) => `${line}${CLEAR_RIGHT}\n`).join("")}${CLEAR_DOWN}`);
    this.#height = shown.length;
  }

  end(): void {
    process.off("exit", this.#restore);
    this.#restore();
  }

  readonly #restore = (): void => {
    this.#stream.write(SHOW_CURSOR);
  };
}
