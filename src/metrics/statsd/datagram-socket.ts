// Sends datagrams to one daemon: opens the socket on demand and tolerates an absent daemon.
import type { Socket } from "node:dgram";
import type { Clock, Timer } from "../../core/clock.ts";
import { nodeDgram, nodeDns, nodeNet } from "../../core/lazy-builtin.ts";

/** Datagrams queued for the socket or the kernel; further ones are dropped. */
const MAX_WAITING = 256;
/** Delay before the socket is reopened after a failure; the name is then resolved again. */
const REOPEN_AFTER_MS = 1_000;
/** How long a resolved address is used. */
const RESOLVED_FOR_MS = 60_000;

export interface DatagramTarget {
  readonly host: string;
  readonly port: number;
  /** Limit for resolving the name, and for draining on close. */
  readonly timeoutMs: number;
}

type State = "closed" | "opening" | "open";

export class DatagramSocket {
  readonly #target: DatagramTarget;
  readonly #clock: Clock;
  #state: State = "closed";
  #socket: Socket | undefined;
  #address = "";
  #waiting: Buffer[] = [];
  #sending = 0;
  #notBefore = Number.NEGATIVE_INFINITY;
  #resolvedUntil = 0;
  #whenIdle: (() => void)[] = [];
  /** Datagrams that were not sent. */
  dropped = 0;

  constructor(target: DatagramTarget, clock: Clock) {
    this.#target = target;
    this.#clock = clock;
  }

  send(datagram: Buffer): void {
    if (this.#waiting.length + this.#sending >= MAX_WAITING) {
      this.dropped++;
      return;
    }
    if (this.#isOutdated) this.#drop();
    if (this.#state === "open") {
      this.#transmit(datagram);
      return;
    }
    this.#waiting.push(datagram);
    if (this.#state === "closed") this.#open();
  }

  /** Waits until all datagrams are sent, at most for the timeout; then closes. Never rejects. */
  async close(): Promise<void> {
    await this.drained();
    this.#drop();
  }

  /** Resolves when all datagrams are sent, or after the timeout. */
  drained(): Promise<void> {
    if (this.#isIdle) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#clock.after(this.#target.timeoutMs, resolve);
      // Keep the process alive while someone waits for the last datagrams. Not by the socket, which stays open.
      timer.hold?.(true);
      this.#whenIdle.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  get #isIdle(): boolean {
    return this.#waiting.length === 0 && this.#sending === 0;
  }

  get #isOutdated(): boolean {
    return this.#state === "open" && this.#sending === 0 && this.#clock.now() >= this.#resolvedUntil;
  }

  #open(): void {
    if (this.#clock.now() < this.#notBefore) {
      this.#drop();
      return;
    }
    this.#state = "opening";
    let isOpen = true;
    const timer: Timer = this.#clock.after(this.#target.timeoutMs, () => {
      isOpen = false;
      this.#failed();
    });
    nodeDns().lookup(this.#target.host, (error, address, family) => {
      timer.cancel();
      if (!isOpen || this.#state !== "opening") return;
      if (error === null) this.#bind(address, family === 6 ? "udp6" : "udp4");
      else this.#failed();
    });
  }

  #bind(address: string, type: "udp4" | "udp6"): void {
    this.#socket = nodeDgram().createSocket(type);
    this.#socket.on("error", () => this.#failed());
    this.#socket.unref();
    this.#address = address;
    this.#state = "open";
    const isName = nodeNet().isIP(this.#target.host) === 0;
    this.#resolvedUntil = isName ? this.#clock.now() + RESOLVED_FOR_MS : Number.POSITIVE_INFINITY;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const datagram of waiting) this.#transmit(datagram);
  }

  #transmit(datagram: Buffer): void {
    const socket = this.#socket;
    if (socket === undefined) {
      this.dropped++;
      return;
    }
    this.#sending++;
    socket.send(datagram, this.#target.port, this.#address, (error) => {
      this.#sending--;
      if (error !== null) {
        this.dropped++;
        if (socket === this.#socket) this.#failed();
      }
      this.#notifyIfIdle();
    });
  }

  #failed(): void {
    this.#notBefore = this.#clock.now() + REOPEN_AFTER_MS;
    this.#drop();
  }

  #drop(): void {
    this.dropped += this.#waiting.length;
    this.#waiting = [];
    this.#state = "closed";
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
    this.#notifyIfIdle();
  }

  #notifyIfIdle(): void {
    if (!this.#isIdle) return;
    const callbacks = this.#whenIdle;
    this.#whenIdle = [];
    for (const callback of callbacks) callback();
  }
}
