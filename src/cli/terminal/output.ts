// All output of the program: data to stdout, messages to stderr.
import { once } from "node:events";
import type { WriteStream } from "node:tty";
import pc from "picocolors";
import type { Environment } from "../../config/env.ts";
import { jsonText } from "./escape.ts";
import { hasColour, isAnimated } from "./terminal.ts";

export type Stream = Pick<WriteStream, "write" | "isTTY" | "columns" | "rows" | "on" | "once" | "off">;

export interface OutputOptions {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly env: Environment;
  /** Data as JSON. */
  readonly json: boolean;
  /** False after --no-color. */
  readonly color: boolean;
}

/** Of a stream that does not tell its size, or has none. */
const USUAL = { columns: 80, rows: 24 };

/** A pseudo-terminal whose size was never set has 0 of both. */
export const sizeOf = ({ columns, rows }: Stream): typeof USUAL => ({
  columns: columns || USUAL.columns,
  rows: rows || USUAL.rows,
});

/** Lines are collected up to this many characters before they are written. */
const CHUNK = 16_384;

type Palette = ReturnType<typeof pc.createColors>;

export class Output {
  readonly json: boolean;
  readonly isTerminal: boolean;
  /** Whether stdout is an interactive terminal that can be redrawn. */
  readonly isAnimated: boolean;
  /** The same for stderr, where progress is shown. */
  readonly showsProgress: boolean;
  /** Colours for data and for messages; no-ops if the stream has none. */
  readonly data: Palette;
  readonly message: Palette;
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly #closed = new AbortController();
  #pending = "";

  constructor({ stdout, stderr, env, json, color }: OutputOptions) {
    this.json = json;
    this.stdout = stdout;
    this.stderr = stderr;
    this.isTerminal = stdout.isTTY === true;
    this.isAnimated = isAnimated(stdout, env);
    this.showsProgress = isAnimated(stderr, env);
    this.data = pc.createColors(hasColour(stdout, env, color));
    this.message = pc.createColors(hasColour(stderr, env, color));
    // `xcache list | head`: the reader closes the pipe early.
    stdout.on("error", () => this.#closed.abort());
    stderr.on("error", () => {});
  }

  /** Aborts when the reader of stdout has closed it. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get columns(): number {
    return sizeOf(this.stdout).columns;
  }

  /** A line of data, buffered until `flush`. */
  async line(text: string): Promise<void> {
    this.#pending += `${text}\n`;
    if (this.#pending.length >= CHUNK) await this.flush();
  }

  async lines(texts: readonly string[]): Promise<void> {
    for (const text of texts) await this.line(text);
    await this.flush();
  }

  /** One JSON object on a line of its own. */
  jsonLine(value: unknown): Promise<void> {
    return this.line(jsonText(value));
  }

  /** These bytes unchanged. */
  async bytes(bytes: Uint8Array | string): Promise<void> {
    await this.flush();
    await this.#write(bytes);
  }

  /** Waits for a slow reader, so that memory stays bounded. */
  async flush(): Promise<void> {
    const text = this.#pending;
    this.#pending = "";
    if (text !== "") await this.#write(text);
  }

  /** A message on stderr; not part of the data. */
  say(text: string): void {
    this.stderr.write(`${text}\n`);
  }

  /** An incidental message; suppressed with --json. */
  note(text: string): void {
    if (!this.json) this.say(this.message.dim(text));
  }

  async #write(text: Uint8Array | string): Promise<void> {
    if (this.closed.aborted || this.stdout.write(text)) return;
    // Rejects when the reader is gone, which `closed` reports.
    await once(this.stdout as never, "drain", { signal: this.closed }).catch(() => {});
  }
}
