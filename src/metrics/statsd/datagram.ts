// Lines of the StatsD protocol, `<name>:<value>|<type>`, and how they are packed into datagrams.
import type { MetricTags } from "../../core/collector.ts";

/** Fits one Ethernet frame: 1,500 less the headers of IPv6, UDP and a tunnel. */
export const MOST_BYTES = 1_432;
const LONGEST_TAG = 200;

export type LineType = "c" | "g" | "h";

/** Only what no daemon takes for a mark of the protocol: nobody can put a line into a name. */
export const plainName = (name: string): string => name.replace(/[^\w.-]/g, "_").replace(/^\.+|\.+$/g, "");

function plainTag(text: string): string {
  const plain = text.replace(/[^\p{L}\p{N}_./-]/gu, "_");
  return plain === "" ? "none" : [...plain].slice(0, LONGEST_TAG).join("");
}

/** A number without exponent; undefined when it is none. Ten decimals: a tenth of a nanosecond. */
export function decimal(value: number): string | undefined {
  if (!Number.isFinite(value)) return undefined;
  const short = String(value);
  if (!short.includes("e")) return short;
  if (Math.abs(value) >= 1) return BigInt(Math.round(value)).toString();
  return value
    .toFixed(10)
    .replace(/\.?0+$/, "")
    .replace(/^-0$/, "0");
}

/** `|#result:hit`, or nothing. */
export function tagSuffix(tags: MetricTags | undefined): string {
  const pairs = Object.entries(tags ?? {}).map(
    ([name, value]) => `${plainTag(name)}:${plainTag(String(value))}`,
  );
  return pairs.length === 0 ? "" : `|#${pairs.join(",")}`;
}

/** A daemon divides by it: the least that ten decimals can say. */
const LEAST_RATE = 1e-10;

/** As `|@0.1`; nothing when all were sent. */
export function rateSuffix(rate: number): string {
  if (rate >= 1) return "";
  return `|@${decimal(Number(Math.max(rate, LEAST_RATE).toPrecision(6)))}`;
}

/** Puts lines together until a datagram is full. */
export class DatagramPacker {
  readonly #send: (datagram: Buffer) => void;
  #lines: string[] = [];
  #bytes = 0;

  constructor(send: (datagram: Buffer) => void) {
    this.#send = send;
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  /** False when it is longer than a datagram. */
  add(line: string): boolean {
    const bytes = Buffer.byteLength(line);
    if (bytes > MOST_BYTES) return false;
    if (this.#bytes + 1 + bytes > MOST_BYTES) this.flush();
    this.#bytes += bytes + (this.#lines.length > 0 ? 1 : 0);
    this.#lines.push(line);
    return true;
  }

  flush(): void {
    if (this.#lines.length === 0) return;
    const datagram = Buffer.from(this.#lines.join("\n"));
    this.#lines = [];
    this.#bytes = 0;
    this.#send(datagram);
  }
}
