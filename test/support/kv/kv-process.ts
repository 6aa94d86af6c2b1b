// A program on the kv client in a process of its own, run to its end.
import { OwnProcess } from "../own-process.ts";

const PRELUDE = `
import { KvBackend } from "./backends/kv/backend.js";
const open = (kvUrl, host) => {
  const backend = new KvBackend({ kvUrl });
  backend.open({ ...HOST, operationTimeoutMs: 500, ...host });
  return backend;
};
`;

export interface KvProcessOptions {
  /** Called with each word the program says. */
  readonly onSaid?: (word: string) => void;
  /** When this resolves, so does `nextMessage()` in the program. */
  readonly event?: Promise<unknown>;
}

export interface KvProcessEnd {
  readonly code: number | null;
  readonly words: readonly string[];
  readonly errors: string;
  /** From its last word to its end. */
  readonly lingeredMs: number;
}

/** In the program also: `open(url, host)`, which opens a backend. */
export async function runKvProcess(
  program: string,
  { onSaid, event }: KvProcessOptions = {},
): Promise<KvProcessEnd> {
  await using own = new OwnProcess(PRELUDE + program, onSaid === undefined ? {} : { onSaid });
  event?.then(
    () => own.tell(),
    () => own.kill(),
  );
  const { code } = await own.ended();
  const { words, errors, lingeredMs } = own;
  return { code, words, errors, lingeredMs };
}
