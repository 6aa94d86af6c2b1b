// Delivery by webhook: a signed POST of JSON, and what its answer means for another attempt.
import type { Clock } from "../core/clock.ts";
import { VERSION } from "../version.ts";
import { DeliveryFailure, type Destination } from "./destination.ts";
import { type Answer, post } from "./http-post.ts";
import { type Outgoing, payloadOf } from "./notification.ts";
import { signatures } from "./signature.ts";
import type { WebhookAddress } from "./webhook-address.ts";

/** Longer wishes of a destination are cut to this. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;

export class WebhookDestination implements Destination {
  readonly #address: WebhookAddress;
  readonly #keys: readonly Buffer[];
  readonly #clock: Clock;

  constructor(address: WebhookAddress, keys: readonly Buffer[], clock: Clock) {
    this.#address = address;
    this.#keys = keys;
    this.#clock = clock;
  }

  get label(): string {
    return this.#address.label;
  }

  async send({ id, notification }: Outgoing, signal: AbortSignal): Promise<void> {
    const { url, authorization } = this.#address;
    const body = JSON.stringify(payloadOf(notification));
    // Receivers compare it with their own calendar.
    const timestamp = Math.floor(this.#wall() / 1000);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "user-agent": `xcache/${VERSION}`,
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
    };
    if (this.#keys.length > 0) headers["webhook-signature"] = signatures(this.#keys, { id, timestamp, body });
    if (authorization !== undefined) headers.authorization = authorization;
    this.#judge(await exchange({ url, headers, body, signal }));
  }

  /** Standard Webhooks 1.0, section "Delivery success and failure". */
  #judge({ status, retryAfter }: Answer): void {
    if (status >= 200 && status < 300) return;
    if (status >= 300 && status < 400) {
      const message = `it answered ${status}, a redirect, and redirects are not followed; give the final address`;
      throw new DeliveryFailure(message, { retryable: false });
    }
    if (status === 410) {
      throw new DeliveryFailure("it answered 410 (gone) and is left alone from now on", {
        retryable: false,
        gone: true,
      });
    }
    const retryable = status >= 500 || status === 429 || status === 408;
    const retryAfterMs = retryable ? this.#patience(retryAfter) : 0;
    throw new DeliveryFailure(`it answered ${status}`, { retryable, retryAfterMs });
  }

  /** RFC 9110 section 10.2.3: seconds or a date. */
  #patience(retryAfter = ""): number {
    const isSeconds = /^\d{1,9}$/.test(retryAfter);
    const wish = isSeconds ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - this.#wall();
    return Number.isNaN(wish) ? 0 : Math.min(Math.max(0, wish), LONGEST_RETRY_AFTER_MS);
  }

  #wall(): number {
    return this.#clock.wall?.() ?? this.#clock.now();
  }
}

async function exchange(request: Parameters<typeof post>[0]): Promise<Answer> {
  try {
    return await post(request);
  } catch (error) {
    if (error instanceof DeliveryFailure) throw error;
    const { message, code } = error as NodeJS.ErrnoException;
    const words = message === "" ? (code ?? "the connection failed") : message;
    // Not the error itself as the cause: it may hold what the receiver sent, and that may be what it was sent.
    throw new DeliveryFailure(words, { retryable: true, cause: Object.assign(new Error(words), { code }) });
  }
}
