// Finds the master that the sentinels name, and hears from them when another one takes over.
import type { HostPort, SentinelAddress } from "../../../core/address/address.ts";
import { ConnectionError, type XCacheError } from "../../../core/errors.ts";
import { ReplyError } from "../resp/reply.ts";
import { disconnected } from "../server/connection-error.ts";
import type { Endpoint } from "../server/endpoint.ts";
import { firstAnswer, NoAnswerError } from "./first-answer.ts";
import {
  isSame,
  querySentinel,
  type SentinelAnswer,
  type SentinelSettings,
  UnknownMasterError,
} from "./query.ts";
import { SentinelSubscription } from "./subscription.ts";

export interface SentinelHost {
  /** Another server is the master now: connections to the former one should be given up. */
  switched(master: Endpoint): void;
  /** Tells of something that no caller waits for. */
  report(error: Error): void;
}

/** A sentinel that has not answered by then is not waited for alone. */
const PATIENCE_MS = 200;
/** Sentinels have little to do: one that takes longer is taken for dead. */
const LONGEST_ANSWER_MS = 1_000;
/** How long news of a new master are believed without asking; other sentinels may hear of it later. */
const NEWS_MS = 2_000;
/** How many sentinels are remembered. */
const MOST_SENTINELS = 64;

export class SentinelWatch {
  readonly #configured: readonly HostPort[];
  readonly #name: string;
  readonly #settings: SentinelSettings;
  readonly #host: SentinelHost;
  readonly #news: SentinelSubscription;
  /** The configured ones, then those they told of. */
  #sentinels: readonly HostPort[];
  /** Who is asked first; the others in turn. */
  #first = 0;
  /** Who is listened to next. */
  #ear: HostPort | undefined;
  #search: Promise<Endpoint> | undefined;
  #stop: AbortController | undefined;
  /** The latest answer that was handed out, and whether its server has turned out to be the master. */
  #given: { readonly by: HostPort; readonly master: HostPort; isAccepted: boolean } | undefined;
  #told: { readonly by: HostPort; readonly master: HostPort; readonly until: number } | undefined;
  #closed = false;

  constructor(address: SentinelAddress, settings: SentinelSettings, host: SentinelHost) {
    this.#configured = address.hosts;
    this.#sentinels = address.hosts;
    this.#name = address.name;
    this.#host = host;
    this.#settings = {
      ...settings,
      username: address.options.sentinelUsername,
      password: address.options.sentinelPassword,
      database: 0,
      operationTimeoutMs: Math.min(settings.operationTimeoutMs, LONGEST_ANSWER_MS),
    };
    this.#news = new SentinelSubscription(this.#settings, address.name, {
      next: () => this.#nextEar(),
      named: (master, by) => this.#compare(master, by),
      switched: (master, by) => this.#switch(master, by),
      report: host.report,
    });
  }

  /** The master's address. Rejects with ConnectionError within connect_timeout where no sentinel names one. */
  async where(): Promise<Endpoint> {
    if (this.#closed) throw disconnected();
    return this.#fromNews() ?? this.#look();
  }

  /** The server at this address has turned out to be a master. */
  accepted(endpoint: Endpoint): void {
    const given = this.#given;
    if (given === undefined || !isSame(given.master, endpoint as HostPort)) return;
    given.isAccepted = true;
    if (this.#news.master !== undefined && !isSame(this.#news.master, given.master)) this.#listenTo(given.by);
  }

  /** A connection was lost or could not be had. A sentinel that names a server which is no master is asked last. */
  doubted(): void {
    const given = this.#given;
    if (given === undefined) return;
    if (given.isAccepted) {
      given.isAccepted = false;
      return;
    }
    this.#first = this.#after(given.by);
    this.#given = undefined;
    if (isSame(this.#told?.master, given.master)) this.#told = undefined;
  }

  close(): void {
    this.#closed = true;
    this.#stop?.abort(disconnected());
    this.#news.close();
  }

  #fromNews(): Endpoint | undefined {
    const told = this.#told;
    if (told === undefined || told.until < this.#settings.clock.now()) return undefined;
    this.#give(told.by, told.master);
    return told.master;
  }

  /** A server that has been accepted stays so for whoever asks next. */
  #give(by: HostPort, master: HostPort): void {
    const isAccepted = isSame(this.#given?.master, master) && this.#given?.isAccepted === true;
    this.#given = { by, master, isAccepted };
  }

  /** One search at a time, for all who ask. */
  #look(): Promise<Endpoint> {
    this.#search ??= this.#find().finally(() => {
      this.#search = undefined;
    });
    return this.#search;
  }

  async #find(): Promise<Endpoint> {
    this.#stop = new AbortController();
    try {
      const answer = await this.#ask(this.#stop.signal);
      this.#learn(answer);
      return answer.master;
    } catch (error) {
      const told = this.#fromNews();
      if (told !== undefined && !this.#closed) return told;
      throw error instanceof NoAnswerError ? notNamed(this.#name, error.failures) : error;
    }
  }

  #ask(signal: AbortSignal): Promise<SentinelAnswer> {
    const { clock, connectTimeoutMs } = this.#settings;
    const inTurn = [...this.#sentinels.slice(this.#first), ...this.#sentinels.slice(0, this.#first)];
    const questions = inTurn.map(
      (by) => (stop: AbortSignal) => querySentinel(this.#settings, by, this.#name, stop),
    );
    return firstAnswer(questions, { clock, eachMs: PATIENCE_MS, allMs: connectTimeoutMs, signal });
  }

  #learn({ by, master, others }: SentinelAnswer): void {
    this.#give(by, master);
    const learned = others.filter((other) => !this.#configured.some((known) => isSame(known, other)));
    const all = [...this.#configured, ...learned].slice(0, MOST_SENTINELS);
    // The one that answered is kept, also when nobody else tells of it.
    this.#sentinels = all.some((known) => isSame(known, by)) ? all : [...all, by];
    this.#first = this.#sentinels.findIndex((known) => isSame(known, by));
    this.#ear ??= by;
    this.#news.listen();
  }

  /** A sentinel that is newly listened to may be of another mind than the one that was asked: a third decides. */
  #compare(master: HostPort, by: HostPort): void {
    const before = this.#given;
    if (before === undefined || isSame(before.master, master)) return;
    this.#first = this.#after(by);
    this.#look().then(
      (found) => {
        if (isSame(before.master, found as HostPort)) this.#listenTo(this.#given?.by ?? before.by);
        else this.#switch(found as HostPort, this.#given?.by ?? by);
      },
      () => {},
    );
  }

  #switch(master: HostPort, by: HostPort): void {
    if (this.#closed) return;
    this.#told = { by, master, until: this.#settings.clock.now() + NEWS_MS };
    this.#stop?.abort(new ConnectionError("the sentinels have made another server the master"));
    this.#host.switched(master);
  }

  #listenTo(sentinel: HostPort): void {
    this.#ear = sentinel;
    this.#news.turn();
  }

  #nextEar(): HostPort {
    const next = this.#ear ?? this.#sentinels[0];
    this.#ear = this.#sentinels[this.#after(next as HostPort)];
    return next as HostPort;
  }

  #after(sentinel: HostPort): number {
    return (this.#sentinels.findIndex((known) => isSame(known, sentinel)) + 1) % this.#sentinels.length;
  }
}

const LOGIN_CODES = ["WRONGPASS", "NOAUTH", "NOPERM"];

/** Says what each of them said, and what to do about the most telling of it. */
function notNamed(name: string, failures: readonly XCacheError[]): ConnectionError {
  const unknown = failures.find((failure) => failure instanceof UnknownMasterError);
  const refused = failures.find(
    ({ cause }) => cause instanceof ReplyError && LOGIN_CODES.includes(cause.code),
  );
  const words = [...new Set(failures.map(({ message }) => message))].join("; ");
  let hint = "Check that the sentinels are running and that kv_url names them.";
  if (unknown !== undefined) hint = unknown.hint;
  else if (refused !== undefined)
    hint = "Check sentinel_username and sentinel_password in kv_url: sentinels have a login of their own.";
  return new ConnectionError(`no sentinel names the master ${JSON.stringify(name)}: ${words}`, {
    hint,
    cause: unknown ?? refused ?? failures[0],
  });
}
