// Finds the current master through the sentinels and follows their announcements of a failover.
import type { HostPort, SentinelAddress, TlsOptions } from "../../../core/address/address.ts";
import { ConnectionError, type XCacheError } from "../../../core/errors.ts";
import { disconnected } from "../../wire/connection-error.ts";
import type { Endpoint } from "../../wire/socket.ts";
import { ReplyError } from "../resp/reply.ts";
import { readTls } from "../server/tls.ts";
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
  /** Another server is the master now: connections to the former one should be dropped. */
  switched(master: Endpoint): void;
  /** Reports an error that no caller waits for. */
  report(error: Error): void;
}

/** How long a sentinel may take before the next one is queried as well. */
const STAGGER_MS = 200;
/** Sentinels have little to do: a slower one is considered dead. */
const LONGEST_ANSWER_MS = 1_000;
/** How long an announced master is used without a query: other sentinels may learn of it later. */
const ANNOUNCED_MS = 2_000;
/** How many sentinels are remembered. */
const MOST_SENTINELS = 64;

export class SentinelWatch {
  readonly #configured: readonly HostPort[];
  readonly #name: string;
  readonly #settings: SentinelSettings;
  readonly #host: SentinelHost;
  readonly #subscription: SentinelSubscription;
  /** The configured ones, then those discovered through them. */
  #sentinels: readonly HostPort[];
  /** The sentinel that is queried first; the others follow in order. */
  #first = 0;
  /** The sentinel to subscribe to next. */
  #nextSubscribed: HostPort | undefined;
  #search: Promise<Endpoint> | undefined;
  #stop: AbortController | undefined;
  /** The last answer returned, and whether its server turned out to be the master. */
  #lastAnswer: { readonly by: HostPort; readonly master: HostPort; isConfirmed: boolean } | undefined;
  #announced: { readonly by: HostPort; readonly master: HostPort; readonly until: number } | undefined;
  #closed = false;

  constructor(address: SentinelAddress, settings: SentinelSettings, host: SentinelHost) {
    this.#configured = address.hosts;
    this.#sentinels = address.hosts;
    this.#name = address.name;
    this.#host = host;
    this.#settings = {
      ...settings,
      login: { username: address.options.sentinelUsername, password: address.options.sentinelPassword },
      tls: sentinelTls(address),
      database: 0,
      operationTimeoutMs: Math.min(settings.operationTimeoutMs, LONGEST_ANSWER_MS),
    };
    this.#subscription = new SentinelSubscription(this.#settings, address.name, {
      nextSentinel: () => this.#takeNextSubscribed(),
      masterNamed: (master, by) => this.#settleDisagreement(master, by),
      switched: (master, by) => this.#switch(master, by),
      report: host.report,
    });
  }

  /** The address of the master. Rejects with ConnectionError within connect_timeout if no sentinel names one. */
  async findMaster(): Promise<Endpoint> {
    if (this.#closed) throw disconnected();
    return this.#announcedMaster() ?? this.#searchMaster();
  }

  /** The server at this address has turned out to be a master. */
  confirmed(endpoint: Endpoint): void {
    const lastAnswer = this.#lastAnswer;
    if (lastAnswer === undefined || !isSame(lastAnswer.master, endpoint as HostPort)) return;
    lastAnswer.isConfirmed = true;
    if (this.#subscription.master !== undefined && !isSame(this.#subscription.master, lastAnswer.master))
      this.#subscribeTo(lastAnswer.by);
  }

  /** A connection was lost or could not be made. A sentinel that named a server which is not the master is queried last. */
  connectionLost(): void {
    const lastAnswer = this.#lastAnswer;
    if (lastAnswer === undefined) return;
    if (lastAnswer.isConfirmed) {
      lastAnswer.isConfirmed = false;
      return;
    }
    this.#first = this.#after(lastAnswer.by);
    this.#lastAnswer = undefined;
    if (isSame(this.#announced?.master, lastAnswer.master)) this.#announced = undefined;
  }

  close(): void {
    this.#closed = true;
    this.#stop?.abort(disconnected());
    this.#subscription.close();
  }

  #announcedMaster(): Endpoint | undefined {
    const announced = this.#announced;
    if (announced === undefined || announced.until < this.#settings.clock.now()) return undefined;
    this.#remember(announced.by, announced.master);
    return announced.master;
  }

  /** A server that was confirmed stays so when it is named again. */
  #remember(by: HostPort, master: HostPort): void {
    const isConfirmed = isSame(this.#lastAnswer?.master, master) && this.#lastAnswer?.isConfirmed === true;
    this.#lastAnswer = { by, master, isConfirmed };
  }

  /** All callers share one search. */
  #searchMaster(): Promise<Endpoint> {
    this.#search ??= this.#runSearch().finally(() => {
      this.#search = undefined;
    });
    return this.#search;
  }

  async #runSearch(): Promise<Endpoint> {
    this.#stop = new AbortController();
    try {
      const answer = await this.#query(this.#stop.signal);
      this.#learn(answer);
      return answer.master;
    } catch (error) {
      const announced = this.#announcedMaster();
      if (announced !== undefined && !this.#closed) return announced;
      throw error instanceof NoAnswerError ? notNamed(this.#name, error.failures) : error;
    }
  }

  #query(signal: AbortSignal): Promise<SentinelAnswer> {
    const { clock, connectTimeoutMs } = this.#settings;
    const ordered = [...this.#sentinels.slice(this.#first), ...this.#sentinels.slice(0, this.#first)];
    const queries = ordered.map(
      (by) => (stop: AbortSignal) => querySentinel(this.#settings, by, this.#name, stop),
    );
    return firstAnswer(queries, { clock, staggerMs: STAGGER_MS, timeoutMs: connectTimeoutMs, signal });
  }

  #learn({ by, master, others }: SentinelAnswer): void {
    this.#remember(by, master);
    const learned = others.filter((other) => !this.#configured.some((known) => isSame(known, other)));
    const all = [...this.#configured, ...learned].slice(0, MOST_SENTINELS);
    // Keeps the one that answered, even if no other sentinel knows it.
    this.#sentinels = all.some((known) => isSame(known, by)) ? all : [...all, by];
    this.#first = this.#sentinels.findIndex((known) => isSame(known, by));
    this.#nextSubscribed ??= by;
    this.#subscription.subscribe();
  }

  /** A newly subscribed sentinel may disagree with the one that was queried: a third one decides. */
  #settleDisagreement(master: HostPort, by: HostPort): void {
    const before = this.#lastAnswer;
    if (before === undefined || isSame(before.master, master)) return;
    this.#first = this.#after(by);
    this.#searchMaster().then(
      (found) => {
        if (isSame(before.master, found as HostPort)) this.#subscribeTo(this.#lastAnswer?.by ?? before.by);
        else this.#switch(found as HostPort, this.#lastAnswer?.by ?? by);
      },
      () => {},
    );
  }

  #switch(master: HostPort, by: HostPort): void {
    if (this.#closed) return;
    this.#announced = { by, master, until: this.#settings.clock.now() + ANNOUNCED_MS };
    this.#stop?.abort(new ConnectionError("the sentinels announced another master"));
    this.#host.switched(master);
  }

  #subscribeTo(sentinel: HostPort): void {
    this.#nextSubscribed = sentinel;
    this.#subscription.switchSentinel();
  }

  #takeNextSubscribed(): HostPort {
    const next = this.#nextSubscribed ?? this.#sentinels[0];
    this.#nextSubscribed = this.#sentinels[this.#after(next as HostPort)];
    return next as HostPort;
  }

  #after(sentinel: HostPort): number {
    return (this.#sentinels.findIndex((known) => isSame(known, sentinel)) + 1) % this.#sentinels.length;
  }
}

/** What the sentinels have not got of their own is that of the servers. */
function sentinelTls({ tls, options }: SentinelAddress): SentinelSettings["tls"] {
  if (!(options.sentinelTls ?? tls)) return undefined;
  const own: Partial<Record<keyof TlsOptions, string | boolean | undefined>> = {
    tlsCaFile: options.sentinelTlsCaFile,
    tlsCertFile: options.sentinelTlsCertFile,
    tlsKeyFile: options.sentinelTlsKeyFile,
    tlsServerName: options.sentinelTlsServerName,
    tlsVerify: options.sentinelTlsVerify,
  };
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  return () => readTls({ ...options, ...(given as TlsOptions) });
}

const LOGIN_CODES = ["WRONGPASS", "NOAUTH", "NOPERM"];

/** Lists every failure, with a hint for the most specific one. */
function notNamed(name: string, failures: readonly XCacheError[]): ConnectionError {
  const unknown = failures.find((failure) => failure instanceof UnknownMasterError);
  const refused = failures.find(
    ({ cause }) => cause instanceof ReplyError && LOGIN_CODES.includes(cause.code),
  );
  const words = [...new Set(failures.map(({ message }) => message))].join("; ");
  let hint = "Check that the sentinels are running and that kv_url names them.";
  if (unknown !== undefined) hint = unknown.hint;
  else if (refused !== undefined)
    hint = "Check sentinel_username and sentinel_password in kv_url: sentinels have their own login.";
  return new ConnectionError(`no sentinel names the master ${JSON.stringify(name)}: ${words}`, {
    hint,
    cause: unknown ?? refused ?? failures[0],
  });
}
