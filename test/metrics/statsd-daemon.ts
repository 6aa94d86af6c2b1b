// A StatsD daemon for tests: receives datagrams and parses them strictly by the grammar of the protocol.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { onTestFinished } from "vitest";
import { until } from "../support/until.ts";

export interface StatsdLine {
  readonly name: string;
  readonly value: number;
  readonly type: string;
  readonly rate: number;
  readonly tags: Readonly<Record<string, string>>;
}

/** `name:value|type`, then a rate, then tags; no other order, no other characters. */
const LINE =
  /^([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*):(-?\d+(?:\.\d+)?)\|(c|g|h)(?:\|@(0?\.\d+|0|1(?:\.0+)?))?(?:\|#([^|#\s]+))?$/;
const TAG = /^([^:,|#@\s]+):([^:,|#@\s]+)$/;

export function readLine(line: string): StatsdLine {
  const [, name = "", value, type = "", rate = "1", tags = ""] = LINE.exec(line) ?? [];
  if (value === undefined) throw new Error(`not a line of the protocol: ${JSON.stringify(line)}`);
  const pairs = tags === "" ? [] : tags.split(",").map((tag) => TAG.exec(tag)?.slice(1) ?? [tag]);
  for (const pair of pairs) if (pair.length !== 2) throw new Error(`not a tag: ${JSON.stringify(pair[0])}`);
  return {
    name,
    value: Number(value),
    type,
    rate: Number(rate),
    tags: Object.fromEntries(pairs) as Record<string, string>,
  };
}

export async function statsdDaemon() {
  const datagrams: Buffer[] = [];
  const socket = createSocket("udp4", (datagram) => void datagrams.push(datagram));
  socket.bind(0, "127.0.0.1");
  onTestFinished(() => void socket.close());
  await once(socket, "listening");
  const texts = (): string[] => datagrams.flatMap((datagram) => datagram.toString("utf8").split("\n"));
  return {
    port: socket.address().port,
    datagrams,
    texts,
    lines: (): StatsdLine[] => texts().map(readLine),
    /** Waits until this many lines have arrived. */
    received: (count: number): Promise<true> =>
      until(() => texts().length >= count && (true as const), { what: `${count} lines have come` }),
  };
}
