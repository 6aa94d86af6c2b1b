// Where everything the program says goes: data to stdout, talk to stderr.
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

/** Lines are collected up to this many characters before they are written. */
const CHUNK = 16_384;

type Palette = ReturnType<typeof pc.createColors>;

export class Output {
  readonly json: boolean;
  readonly isTerminal: boolean;
  /** Whether stdout is in front of somebody and may be drawn on again. */
  readonly isAnimated: boolean;
  /** The same of stderr, where progress is shown. */
  readonly showsProgress: boolean;
  /** Colours of the data and of the talk; each a no-op where its stream has none. */
  readonly data: Palette;
  readonly talk: Palette;
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
    this.talk = pc.createColors(hasColour(stderr, env, color));
    // `xcache list | head`: whoever has read enough closes the pipe.
    stdout.on("error", () => this.#closed.abort());
    stderr.on("error", () => {});
  }

  /** Aborts once nobody reads the data any more. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get columns(): number {
    return this.stdout.columns ?? 80;
  }

  /** A line of data. It may wait for others: `flush` sends it. */
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

  /** Exactly these bytes. */
  async bytes(bytes: Uint8Array | string): Promise<void> {
    await this.flush();
    await this.#write(bytes);
  }

  /** Waits where the reader is slower: nothing piles up here. */
  async flush(): Promise<void> {
    const text = this.#pending;
    this.#pending = "";
    if (text !== "") await this.#write(text);
  }

  /** A line for whoever watches; not part of the data. */
  say(text: string): void {
    this.stderr.write(`${text}\n`);
  }

  /** As `say`, of what succeeded or is only by the way; silent where the output is for programs. */
  note(text: string): void {
    if (!this.json) this.say(this.talk.dim(text));
  }

  async #write(text: Uint8Array | string): Promise<void> {
    if (this.closed.aborted || this.stdout.write(text)) return;
    // It rejects when nobody reads any more, which `closed` tells everybody.
    await once(this.stdout as never, "drain", { signal: this.closed }).catch(() => {});
  }
}
