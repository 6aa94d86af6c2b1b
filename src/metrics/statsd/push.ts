// PushCollector: sends measurements to a StatsD daemon over UDP. Never throws if the daemon is down.
import { requireOptions } from "../../core/arguments.ts";
import { type Clock, systemClock, type Timer } from "../../core/clock.ts";
import { type Collector, type MetricTags, type SendingCollector, sendsTo } from "../../core/collector.ts";
import { type Duration, toSeconds } from "../../core/duration.ts";
import { datagramName, metricNamed } from "../catalogue.ts";
import {
  isSampleRate,
  requireFlag,
  requireHost,
  requirePort,
  requirePositive,
  requireText,
} from "../collectors/collector-options.ts";
import { DatagramPacker, decimal, type LineType, plainName, rateSuffix, tagSuffix } from "./datagram.ts";
import { DatagramSocket } from "./datagram-socket.ts";

export interface PushCollectorOptions {
  /** Host name or address of the daemon. Default: `127.0.0.1`. */
  readonly host?: string;
  /** Its UDP port. Default: 8125. */
  readonly port?: number;
  /** Prepended to every name, with a dot. Default: `xcache`. */
  readonly prefix?: string;
  /** Fraction of counts and observations that is sent; gauges are always sent. Default: 1. */
  readonly sampleRate?: number;
  /** Time allowed for resolving the host, and for closing. Default: 1 second. */
  readonly timeout?: Duration;
  /** Whether to send tags as `|#key:value`. Default: false. */
  readonly useTags?: boolean;
}

const OPTIONS = ["host", "port", "prefix", "sampleRate", "timeout", "useTags"];
/** Series whose remainders are kept; beyond that all are cleared. */
const MAX_REMAINDERS = 10_000;
/** How long lines wait to share a datagram. */
const SEND_AFTER_MS = 100;

/**
 * StatsD datagrams over UDP.
 *
 * @example
 * ```ts
 * const collector = new PushCollector({ host: "127.0.0.1", port: 8125, prefix: "shop.cache", useTags: true });
 * const cache = new XCache({ metrics: new CacheMetrics([collector]) });
 * ```
 */
export class PushCollector implements Collector {
  /** @internal */
  readonly [sendsTo]: SendingCollector[typeof sendsTo];
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #sampleRate: number;
  readonly #useTags: boolean;
  readonly #socket: DatagramSocket;
  readonly #packer: DatagramPacker;
  /** The remainder of each sampled counter, so that nothing is lost to rounding. */
  readonly #remainders = new Map<string, number>();
  #timer: Timer | undefined;
  #dropped = 0;

  /** Throws ConfigError for invalid options. Opens no socket yet. */
  constructor(options: PushCollectorOptions = {}, clock: Clock = systemClock) {
    requireOptions(options, OPTIONS);
    const { host = "127.0.0.1", port = 8125, prefix = "xcache" } = options;
    const { sampleRate = 1, timeout = 1, useTags = false } = options;
    const name = plainName(requireText(prefix, "prefix"));
    this.#clock = clock;
    this.#prefix = name === "" ? "" : `${name}.`;
    this.#sampleRate = requirePositive(sampleRate, "sampleRate", 1);
    this.#useTags = requireFlag(useTags, "useTags");
    const timeoutMs = requirePositive(toSeconds(timeout), "timeout", 3_600) * 1000;
    const target = { host: requireHost(host), port: requirePort(port, 1), timeoutMs };
    const place = `${target.host}:${target.port}`;
    this[sendsTo] = {
      place: `${place} ${this.#prefix}`,
      name: `the daemon at ${place} as "${this.#prefix}*"`,
    };
    this.#socket = new DatagramSocket(target, clock);
    this.#packer = new DatagramPacker((datagram) => this.#socket.send(datagram));
  }

  /** Invalid lines and datagrams that were not sent. */
  get dropped(): number {
    return this.#dropped + this.#socket.dropped;
  }

  increment(metric: string, value = 1, tags?: MetricTags): void {
    const name = this.#nameOf(metric);
    const suffix = `${rateSuffix(this.#sampleRate)}${this.#tags(tags)}`;
    const sent = this.#sampleRate === 1 ? value : this.#sampled(`${name}${suffix}`, value);
    if (sent !== 0) this.#add(name, sent, "c", suffix);
  }

  gauge(metric: string, value: number, tags?: MetricTags): void {
    const name = this.#nameOf(metric);
    const suffix = this.#tags(tags);
    // A signed gauge is a relative change in StatsD, so set it to 0 first.
    if (value < 0) this.#add(name, 0, "g", suffix);
    this.#add(name, value, "g", suffix);
  }

  histogram(metric: string, value: number, tags?: MetricTags, sampleRate = 1): void {
    if (!isSampleRate(sampleRate)) {
      this.#dropped++;
      return;
    }
    if (this.#sampleRate < 1 && this.#clock.random() >= this.#sampleRate) return;
    const rate = rateSuffix(this.#sampleRate * sampleRate);
    this.#add(this.#nameOf(metric), value, "h", `${rate}${this.#tags(tags)}`);
  }

  /** `value` is in seconds and is sent in seconds. */
  timing(metric: string, value: number, tags?: MetricTags): void {
    this.histogram(metric, value, tags);
  }

  /** Sends buffered lines and waits until they are sent, at most for the timeout. Never rejects. */
  flush(): Promise<void> {
    this.#send();
    return this.#socket.drained();
  }

  /** `flush`, then closes the socket; the next measurement reopens it. Never rejects. */
  close(): Promise<void> {
    this.#send();
    return this.#socket.close();
  }

  /** Counts are already summed: scaling the sum equals sampling the calls, without the randomness. */
  #sampled(series: string, value: number): number {
    const wanted = value * this.#sampleRate + (this.#remainders.get(series) ?? 0);
    const sent = Math.trunc(wanted);
    if (this.#remainders.size >= MAX_REMAINDERS) this.#remainders.clear();
    this.#remainders.set(series, wanted - sent);
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
