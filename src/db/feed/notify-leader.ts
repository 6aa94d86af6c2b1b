// Leads over LISTEN: triggers notify of the tables that a commit has changed. PostgreSQL delivers a notification only once
// snapshots see its transaction, so there is no gate.
import { ConnectionError } from "../../core/errors.ts";
import { nodeCrypto } from "../../core/lazy-builtin.ts";
import { Catalogue } from "./catalogue.ts";
import { beatMs, type ChangeSource, catalogueMs, type LeaderHost } from "./leader.ts";
import { type LinkOptions, SqlLink } from "./link.ts";
import { Signal } from "./signal.ts";
import { tagsOfAll } from "./transaction-tags.ts";

export interface NotifyOptions {
  readonly links: LinkOptions;
  readonly channel: string;
  readonly tables: readonly string[];
}

type Host = LeaderHost<SqlLink, Catalogue>;

export class NotifySource implements ChangeSource<SqlLink, Catalogue> {
  readonly #options: NotifyOptions;

  constructor(options: NotifyOptions) {
    this.#options = options;
  }

  open(): Promise<SqlLink> {
    return SqlLink.open(this.#options.links);
  }

  readCatalogue(sql: SqlLink): Promise<Catalogue> {
    return Catalogue.ofTriggers(sql, this.#options.channel, this.#options.tables);
  }

  isLed(sql: SqlLink, lockKey: bigint): Promise<boolean> {
    return sql.isLocked(lockKey);
  }

  async lead(host: Host, sql: SqlLink, lockKey: bigint): Promise<boolean> {
    const link = await SqlLink.open(this.#options.links);
    try {
      const [row] = await link.query("SELECT pg_try_advisory_lock($1) AS locked", [String(lockKey)]);
      if (row?.locked !== true) return false;
      host.elected();
      await new Listening(host, this.#options, sql, link).run();
      return true;
    } finally {
      link.close();
    }
  }
}

/** One uninterrupted life of a listening connection. */
class Listening {
  readonly #host: Host;
  readonly #options: NotifyOptions;
  readonly #sql: SqlLink;
  readonly #link: SqlLink;
  readonly #news: Signal;
  readonly #id = nodeCrypto().randomUUID();
  /** Relations that have changed, by oid. */
  #changed = new Set<number>();
  #changedAt = 0;
  #sent = 0;
  #received = 0;
  #failure: Error | undefined;

  constructor(host: Host, options: NotifyOptions, sql: SqlLink, link: SqlLink) {
    this.#host = host;
    this.#options = options;
    this.#sql = sql;
    this.#link = link;
    this.#news = new Signal(host.clock);
    for (const each of [sql, link]) each.onFailure((error) => this.#fail(error));
    link.onNotification((payload) => this.#notified(payload));
  }

  async run(): Promise<void> {
    // Never waits for a synchronous standby.
    await this.#sql.query("SET synchronous_commit = local");
    await this.#link.query(`LISTEN "${this.#options.channel.replaceAll('"', '""')}"`);
    const { catalogue, rows, counts } = this.#host;
    await this.#deliver(tagsOfAll(catalogue.names, rows));
    counts.gap();
    for (const each of [this.#sql, this.#link]) each.release();
    await this.#loop();
  }

  async #loop(): Promise<void> {
    const { clock, silentForMs } = this.#host;
    let [nextBeat, nextCatalogue] = [clock.now(), clock.now() + catalogueMs(silentForMs)];
    let sentAt = 0;
    for (;;) {
      this.#requireOpen(sentAt);
      const [received, isAnswered] = [this.#received, this.#received === this.#sent];
      await this.#invalidate();
      if (isAnswered && received > 0 && sentAt > 0) {
        // Notifications arrive in the order of commits: all before this beat have been invalidated.
        const at = sentAt;
        sentAt = 0;
        nextBeat = clock.now() + beatMs(silentForMs);
        await this.#host.proven(at);
      }
      if (clock.now() >= nextCatalogue) {
        nextCatalogue = clock.now() + catalogueMs(silentForMs);
        const names = await this.#host.refresh(this.#sql);
        if (names !== undefined) await this.#deliver(tagsOfAll(names, this.#host.rows));
      }
      if (sentAt === 0 && clock.now() >= nextBeat) {
        sentAt = clock.now();
        await this.#sql.query("SELECT pg_notify($1, $2)", [
          this.#options.channel,
          `${this.#id} ${++this.#sent}`,
        ]);
      }
      await this.#news.wait(sentAt > 0 ? beatMs(silentForMs) : Math.max(0, nextBeat - clock.now()));
    }
  }

  async #invalidate(): Promise<void> {
    if (this.#changed.size === 0) return;
    const [changed, since] = [this.#changed, this.#changedAt];
    this.#changed = new Set();
    const { clock, counts, rows } = this.#host;
    const tables = [...changed].map((oid) => this.#host.catalogue.changed.get(oid));
    if (tables.includes(undefined)) {
      const names = await this.#host.refresh(this.#sql);
      await this.#deliver(tagsOfAll(names ?? this.#host.catalogue.names, rows));
    }
    const names = tables.flatMap((each) => each?.map(({ name }) => name) ?? []);
    await this.#deliver([...new Set(tagsOfAll(names, rows))]);
    counts.invalidated(changed.size, (clock.now() - since) / 1_000);
  }

  #deliver(tags: readonly string[]): Promise<void> {
    return this.#host.deliver(tags, () => this.#failure !== undefined);
  }

  /** The oid of a changed relation, or one of this leader's own beats. */
  #notified(payload: string): void {
    const [first = "", beat] = payload.split(" ");
    if (beat === undefined) {
      if (this.#changed.size === 0) this.#changedAt = this.#host.clock.now();
      this.#changed.add(Number(first));
    } else if (first === this.#id) this.#received = Number(beat);
    this.#news.raise();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#news.raise();
  }

  #requireOpen(sentAt: number): void {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#host.isClosed) throw new ConnectionError("the feed was closed", { code: "DISCONNECTED" });
    const { clock } = this.#host;
    const { links } = this.#options;
    if (sentAt > 0 && clock.now() - sentAt > links.timeoutMs) {
      throw new ConnectionError(`no notification arrived for ${links.timeoutMs / 1_000} s`);
    }
  }
}
