// Formats lines of the StatsD protocol, `<name>:<value>|<type>`, and packs them into datagrams.
import type { MetricTags } from "../../core/collector.ts";
import { unicodePattern } from "../../core/lazy-builtin.ts";

/** Fits one Ethernet frame: 1,500 minus the headers of IPv6, UDP and a tunnel. */
export const MOST_BYTES = 1_432;
const MAX_TAG_LENGTH = 200;

export type LineType = "c" | "g" | "h";

/** Removes everything with a meaning in the protocol, so that a name cannot inject a line. */
export const plainName = (name: string): string => name.replace(/[^\w.-]/g, "_").replace(/^\.+|\.+$/g, "");

const notInTags = unicodePattern(String.raw`[^\p{L}\p{N}_./-]`, "gu");

function plainTag(text: string): string {
  const plain = text.replace(notInTags(), "_");
  return plain === "" ? "none" : [...plain].slice(0, MAX_TAG_LENGTH).join("");
}

/** A number without exponent; undefined if not finite. Ten decimals: a tenth of a nanosecond. */
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

/** `|#result:hit`, or empty. */
export function tagSuffix(tags: MetricTags | undefined): string {
  const pairs = Object.entries(tags ?? {}).map(
    ([name, value]) => `${plainTag(name)}:${plainTag(String(value))}`,
  );
  return pairs.length === 0 ? "" : `|#${pairs.join(",")}`;
}

/** A daemon divides by the rate; this is the smallest ten decimals can express. */
const MIN_RATE = 1e-10;

/** Such as `|@0.1`; empty if nothing was sampled out. */
export function rateSuffix(rate: number): string {
  if (rate >= 1) return "";
  return `|@${decimal(Number(Math.max(rate, MIN_RATE).toPrecision(6)))}`;
}

/** Collects lines until a datagram is full. */
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

  /** False if the line is longer than a datagram. */
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
