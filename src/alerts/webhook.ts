// Delivery by webhook: a signed POST of JSON; the response decides whether to retry.
import type { Clock } from "../core/clock.ts";
import { VERSION } from "../version.ts";
import { DeliveryFailure, type Destination } from "./destination.ts";
import { type PostResponse, post } from "./http-post.ts";
import { type Outgoing, payloadOf } from "./notification.ts";
import { signatures } from "./signature.ts";
import type { WebhookAddress } from "./webhook-address.ts";

/** Longer Retry-After delays are capped. */
const MAX_RETRY_AFTER_MS = 3_600_000;

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
    // Wall-clock time: receivers compare it with their own.
    const timestamp = Math.floor(this.#wall() / 1000);
    const headers: Record<string, string> = {
      "content-type": "application/json",
      "user-agent": `xcache/${VERSION}`,
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
    };
    if (this.#keys.length > 0) headers["webhook-signature"] = signatures(this.#keys, { id, timestamp, body });
    if (authorization !== undefined) headers.authorization = authorization;
    this.#checkStatus(await exchange({ url, headers, body, signal }));
  }

  /** Standard Webhooks 1.0, section "Delivery success and failure". */
  #checkStatus({ status, retryAfter }: PostResponse): void {
    if (status >= 200 && status < 300) return;
    if (status >= 300 && status < 400) {
      const message = `it answered ${status}, a redirect, which is not followed; use the final URL`;
      throw new DeliveryFailure(message, { retryable: false });
    }
    if (status === 410) {
      throw new DeliveryFailure("it answered 410 (gone) and gets no further messages", {
        retryable: false,
        gone: true,
      });
    }
    const retryable = status >= 500 || status === 429 || status === 408;
    const retryAfterMs = retryable ? this.#retryDelayMs(retryAfter) : 0;
    throw new DeliveryFailure(`it answered ${status}`, { retryable, retryAfterMs });
  }

  /** RFC 9110 section 10.2.3: seconds or a date. */
  #retryDelayMs(retryAfter = ""): number {
    const isSeconds = /^\d{1,9}$/.test(retryAfter);
    const delayMs = isSeconds ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - this.#wall();
    return Number.isNaN(delayMs) ? 0 : Math.min(Math.max(0, delayMs), MAX_RETRY_AFTER_MS);
  }

  #wall(): number {
    return this.#clock.wall?.() ?? this.#clock.now();
  }
}

async function exchange(request: Parameters<typeof post>[0]): Promise<PostResponse> {
  try {
    return await post(request);
  } catch (error) {
    if (error instanceof DeliveryFailure) throw error;
    const { message, code } = error as NodeJS.ErrnoException;
    const reason = message === "" ? (code ?? "the connection failed") : message;
    // The error itself is not attached as the cause: it may contain the response, which may echo the request.
    throw new DeliveryFailure(reason, { retryable: true, cause: Object.assign(new Error(reason), { code }) });
  }
}
