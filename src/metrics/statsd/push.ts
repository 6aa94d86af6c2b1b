// PushCollector: sends what is measured to a StatsD daemon, as lines in datagrams. It never throws on a dead one.
import { requireOptions } from "../../core/arguments.ts";
import { type Clock, systemClock, type Timer } from "../../core/clock.ts";
import type { Collector, MetricTags } from "../../core/collector.ts";
import { datagramName, metricNamed } from "../catalogue.ts";
import {
  isShare,
  requireFlag,
  requireHost,
  requirePort,
  requirePositive,
  requireText,
} from "../collectors/collector-options.ts";
import { DatagramPacker, decimal, type LineType, plainName, rateSuffix, tagSuffix } from "./datagram.ts";
import { DatagramSocket } from "./datagram-socket.ts";

export interface PushCollectorOptions {
  /** Name or address of the daemon. Default: `127.0.0.1`. */
  readonly host?: string;
  /** Its UDP port. Default: 8125. */
  readonly port?: number;
  /** Comes before every name, with a dot. Default: `xcache`. */
  readonly prefix?: string;
  /** Share of the counts and observations that is sent; gauges are all sent. Default: 1, everything. */
  readonly sampleRate?: number;
  /** Seconds that resolving the host may take, and closing. Default: 1. */
  readonly timeout?: number;
  /** Adds tags as `|#key:value`; without it they are left out. Default: false. */
  readonly useTags?: boolean;
}

const OPTIONS = ["host", "port", "prefix", "sampleRate", "timeout", "useTags"];
/** Series whose rests are kept; beyond that all are forgotten at once. */
const MOST_RESTS = 10_000;
/** Lines wait this long for others to travel with. */
const SEND_AFTER_MS = 100;

export class PushCollector implements Collector {
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #sampleRate: number;
  readonly #useTags: boolean;
  readonly #socket: DatagramSocket;
  readonly #packer: DatagramPacker;
  /** What sampling has left of each counter: nothing is lost to rounding. */
  readonly #rests = new Map<string, number>();
  #timer: Timer | undefined;
  #dropped = 0;

  /** Throws ConfigError for options that cannot be used. Opens nothing yet. */
  constructor(options: PushCollectorOptions = {}, clock: Clock = systemClock) {
    requireOptions(options, OPTIONS);
    const { host = "127.0.0.1", port = 8125, prefix = "xcache" } = options;
    const { sampleRate = 1, timeout = 1, useTags = false } = options;
    const name = plainName(requireText(prefix, "prefix"));
    this.#clock = clock;
    this.#prefix = name === "" ? "" : `${name}.`;
    this.#sampleRate = requirePositive(sampleRate, "sampleRate", 1);
    this.#useTags = requireFlag(useTags, "useTags");
    const timeoutMs = requirePositive(timeout, "timeout", 3_600) * 1000;
    const target = { host: requireHost(host), port: requirePort(port, 1), timeoutMs };
    this.#socket = new DatagramSocket(target, clock);
    this.#packer = new DatagramPacker((datagram) => this.#socket.send(datagram));
  }

  /** Lines that cannot be written and datagrams that did not leave this process. */
  get dropped(): number {
    return this.#dropped + this.#socket.dropped;
  }

  increment(metric: string, value = 1, tags?: MetricTags): void {
    const name = this.#nameOf(metric);
    const suffix = `${rateSuffix(this.#sampleRate)}${this.#tags(tags)}`;
    const sent = this.#sampleRate === 1 ? value : this.#thinned(`${name}${suffix}`, value);
    if (sent !== 0) this.#add(name, sent, "c", suffix);
  }

  gauge(metric: string, value: number, tags?: MetricTags): void {
    const name = this.#nameOf(metric);
    const suffix = this.#tags(tags);
    // A sign would make it a change by so much.
    if (value < 0) this.#add(name, 0, "g", suffix);
    this.#add(name, value, "g", suffix);
  }

  histogram(metric: string, value: number, tags?: MetricTags, sampleRate = 1): void {
    if (!isShare(sampleRate)) {
      this.#dropped++;
      return;
    }
    if (this.#sampleRate < 1 && this.#clock.random() >= this.#sampleRate) return;
    const rate = rateSuffix(this.#sampleRate * sampleRate);
    this.#add(this.#nameOf(metric), value, "h", `${rate}${this.#tags(tags)}`);
  }

  /** `value` is in seconds, and sent so. */
  timing(metric: string, value: number, tags?: MetricTags): void {
    this.histogram(metric, value, tags);
  }

  /** Sends what is waiting, and waits until it has left, at most as long as the timeout. Never rejects. */
  flush(): Promise<void> {
    this.#send();
    return this.#socket.drained();
  }

  /** `flush`, then closes the socket; measuring opens it again. Never rejects. */
  close(): Promise<void> {
    this.#send();
    return this.#socket.close();
  }

  /** Counts are summed up already: a share of the sum says the same as a share of the calls, without the luck. */
  #thinned(series: string, value: number): number {
    const wanted = value * this.#sampleRate + (this.#rests.get(series) ?? 0);
    const sent = Math.trunc(wanted);
    if (this.#rests.size >= MOST_RESTS) this.#rests.clear();
    this.#rests.set(series, wanted - sent);
    return sent;
  }

  #nameOf(metric: string): string {
    return `${this.#prefix}${plainName(metricNamed(metric)?.datagram ?? datagramName(String(metric)))}`;
  }

  #tags(tags: MetricTags | undefined): string {
    return this.#useTags ? tagSuffix(tags) : "";
  }

  #add(name: string, value: number, type: LineType, suffix: string): void {
    const text = decimal(value);
    if (
      text === undefined ||
      name === this.#prefix ||
      !this.#packer.add(`${name}:${text}|${type}${suffix}`)
    ) {
      this.#dropped++;
      return;
    }
    this.#timer ??= this.#clock.after(SEND_AFTER_MS, () => this.#send());
  }

  #send(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#packer.flush();
  }
}
