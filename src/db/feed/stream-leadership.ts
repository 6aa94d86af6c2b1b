// What leading over a stream of changes takes, whichever database sends it: transactions wait in the gate, what snapshots
// see is invalidated, and from time to time it is proven that nothing visible has been missed.
import { ConnectionError } from "../../core/errors.ts";
import type { Gate } from "./gate.ts";
import { beatMs, type FeedCatalogue, type LeaderHost } from "./leader.ts";
import { Signal } from "./signal.ts";
import { type TransactionTags, tagsOfAll } from "./transaction-tags.ts";

/** Between two looks at transactions that are not visible yet, and at a stream that has not come far enough. */
const FIRST_PAUSE_MS = 1;
const LONGEST_PAUSE_MS = 50;

/** To be proven: everything visible at `at` is before `target`. */
export interface Claim {
  readonly at: number;
  readonly target: bigint;
}

interface WatchedLink {
  onFailure(listener: (error: Error) => void): void;
}

/** The connection that the stream arrives on. */
export interface StreamLink extends WatchedLink {
  /** When anything last arrived; 0: nothing yet. */
  readonly heardAt: number;
}

export interface StreamOptions {
  /** Completes "nothing was heard from ...". */
  readonly stream: string;
  readonly timeoutMs: number;
}

/** One uninterrupted life of a stream. */
export abstract class StreamLeadership<Sql extends WatchedLink, Tables extends FeedCatalogue, Snapshot> {
  protected readonly host: LeaderHost<Sql, Tables>;
  protected readonly sql: Sql;
  protected readonly gate: Gate<Snapshot>;
  protected claim: Claim | undefined;
  protected nextBeat = 0;
  /** Everything before it has been received. */
  protected position = 0n;
  readonly #link: StreamLink;
  readonly #options: StreamOptions;
  readonly #news: Signal;
  /** How long the next pause is; grows while nothing happens. */
  #pauseMs = FIRST_PAUSE_MS;
  #failure: Error | undefined;

  constructor(
    host: LeaderHost<Sql, Tables>,
    sql: Sql,
    link: StreamLink,
    gate: Gate<Snapshot>,
    options: StreamOptions,
  ) {
    this.host = host;
    this.sql = sql;
    this.gate = gate;
    this.#link = link;
    this.#options = options;
    this.#news = new Signal(host.clock);
    for (const each of [sql, link]) each.onFailure((error) => this.#fail(error));
  }

  /** Reads the catalogue; if it has changed, what it describes has. */
  protected abstract refresh(): Promise<void>;

  protected async invalidate(visible: readonly TransactionTags[]): Promise<void> {
    if (visible.some(({ isEverything }) => isEverything)) {
      const before = [...this.host.catalogue.names];
      await this.refresh();
      await this.deliverAll([...before, ...this.host.catalogue.names]);
    }
    await this.deliver([...new Set(visible.flatMap((transaction) => transaction.tags()))]);
    this.gate.done(visible);
  }

  /** Everything visible before `position` has been invalidated. Returns whether that proves the claim. */
  protected async proveUpTo(position: bigint): Promise<boolean> {
    if (this.claim === undefined || position < this.claim.target) return false;
    const { at } = this.claim;
    this.claim = undefined;
    this.nextBeat = this.host.clock.now() + beatMs(this.host.silentForMs);
    this.proven();
    await this.host.proven(at);
    return true;
  }

  /** Called when a claim is proven, before anybody learns of it. */
  protected proven(): void {}

  protected deliver(tags: readonly string[]): Promise<void> {
    return this.host.deliver(tags, () => this.#failure !== undefined);
  }

  /** Everything in these tables may have changed. */
  protected deliverAll(names: Iterable<string>): Promise<void> {
    return this.deliver(tagsOfAll(names, this.host.rows));
  }

  /** The stream has come as far as `position`. */
  protected advanceTo(position: bigint): void {
    if (position > this.position) this.position = position;
    this.#news.raise();
  }

  /** Whether the latest pause was in vain. */
  protected get hasPaused(): boolean {
    return this.#pauseMs > FIRST_PAUSE_MS;
  }

  /** There was something to do: the next pause is short. */
  protected hasProgressed(): void {
    this.#pauseMs = FIRST_PAUSE_MS;
  }

  /** Until something arrives; while something is waited for, at most a pause that grows. */
  protected async pause(isWaiting: boolean): Promise<void> {
    await this.#news.wait(isWaiting ? this.#pauseMs : Math.max(0, this.nextBeat - this.host.clock.now()));
    this.#pauseMs = isWaiting ? Math.min(LONGEST_PAUSE_MS, 2 * this.#pauseMs) : FIRST_PAUSE_MS;
  }

  protected requireOpen(): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.host.isClosed) throw new ConnectionError("the feed was closed", { code: "DISCONNECTED" });
    const { stream, timeoutMs } = this.#options;
    const { heardAt } = this.#link;
    if (heardAt > 0 && this.host.clock.now() - heardAt > timeoutMs)
      throw new ConnectionError(`nothing was heard from ${stream} for ${timeoutMs / 1_000} s`);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#news.raise();
  }
}
