// Who a connection logs in as: fixed, or as a function of the user says, again and again where that expires.

import type { PasswordFunction } from "../../../core/address/address.ts";
import { outsideCallers } from "../../../core/async-context.ts";
import type { Clock, Timer } from "../../../core/clock.ts";
import { ConnectionError } from "../../../core/errors.ts";
import { toError } from "../../../core/events.ts";
import { redactText } from "../../../core/redact.ts";

export interface Login {
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** In milliseconds since the epoch; undefined: never. */
  readonly expiresAt?: number | undefined;
}

export type LoginSource = () => Promise<Login>;

/** Credentials as configured. */
export interface LoginOptions {
  readonly username: string | undefined;
  readonly password: string | PasswordFunction | undefined;
}

export function loginOf({ username, password }: LoginOptions): Login | LoginSource {
  return typeof password === "function" ? () => askFor(password, username) : { username, password };
}

/** Rejects with ConnectionError; no message contains what was returned. */
async function askFor(password: PasswordFunction, username: string | undefined): Promise<Login> {
  let given: unknown;
  try {
    given = await outsideCallers(password);
  } catch (cause) {
    const words = redactText(toError(cause).message);
    throw new ConnectionError(`the password function failed: ${words}`, { cause, hint: FUNCTION });
  }
  if (isFilled(given)) return { username, password: given };
  if (typeof given !== "object" || given === null) throw unusable("it returned neither");
  const { username: user = username, password: secret, expiresAt } = given as Record<string, unknown>;
  if (!isFilled(secret)) throw unusable("`password` is not a non-empty string");
  if (user !== undefined && !isFilled(user)) throw unusable("`username` is not a non-empty string");
  if (expiresAt === undefined) return { username: user, password: secret };
  const at = expiresAt instanceof Date ? expiresAt.getTime() : expiresAt;
  if (typeof at !== "number" || Number.isNaN(at))
    throw unusable("`expiresAt` is neither a Date nor a number of milliseconds");
  return { username: user, password: secret, expiresAt: at };
}

const FUNCTION = "See why the function given as `password` fails.";

const isFilled = (value: unknown): value is string => typeof value === "string" && value !== "";

function unusable(why: string): ConnectionError {
  return new ConnectionError(
    `the password function must return a password or { username, password, expiresAt }: ${why}`,
    { hint: FUNCTION },
  );
}

/** How long before its expiry a login is renewed, at most; a short one after three quarters of its time. */
const MOST_AHEAD_MS = 60_000;
const AHEAD = 0.25;
/** Connections that were opened together are spread over this share of the time ahead. */
const SPREAD = 0.5;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;

export interface RenewalHost {
  readonly clock: Clock;
  /** Logs in again. Rejects if that fails; the present login then stays. */
  renew(): Promise<Login>;
  /** Called for the first failure in a row. */
  failed(error: Error): void;
}

/** Logs a connection in again before its login expires, for as long as it is open. */
export class LoginRenewal {
  readonly #host: RenewalHost;
  #timer: Timer | undefined;
  #failures = 0;
  #isCancelled = false;

  constructor(host: RenewalHost) {
    this.#host = host;
  }

  schedule({ expiresAt }: Login): void {
    if (expiresAt === undefined || expiresAt === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#host;
    const leftMs = expiresAt - (clock.wall?.() ?? clock.now());
    if (leftMs <= 0) {
      this.#failed(expired());
      return;
    }
    this.#failures = 0;
    const aheadMs = Math.min(MOST_AHEAD_MS, leftMs * AHEAD) * (1 + clock.random() * SPREAD);
    this.#after(Math.max(FIRST_RETRY_MS, leftMs - aheadMs));
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#timer?.cancel();
  }

  #after(delayMs: number): void {
    if (!this.#isCancelled) this.#timer = this.#host.clock.after(delayMs, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    try {
      this.schedule(await this.#host.renew());
    } catch (error) {
      this.#failed(toError(error));
    }
  }

  #failed(error: Error): void {
    if (this.#isCancelled) return;
    if (this.#failures === 0) this.#host.failed(error);
    this.#after(Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, LONGEST_RETRY_MS));
  }
}

/** The server may accept it all the same, but to ask for another one at once would be to ask all the time. */
const expired = (): ConnectionError =>
  new ConnectionError("the password function returned a login that has expired", {
    hint: "`expiresAt` is a Date or in milliseconds since the epoch; compare the clock of this machine.",
  });
