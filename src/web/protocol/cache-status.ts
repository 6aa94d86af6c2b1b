// The response field that reports what the cache did: Cache-Status (RFC 9211) or the older X-Cache.
import { fieldOf, type HeaderList, withField } from "../message/header-list.ts";

/** Why the handler was called (RFC 9211, 2.2). */
export type ForwardReason = "bypass" | "method" | "uri-miss" | "vary-miss" | "stale" | "request";

export interface Forwarded {
  readonly reason: ForwardReason;
  /** The handler's status, if the client got a different one. */
  readonly status?: number;
  readonly isStored?: boolean;
  /** One word for human readers. */
  readonly detail?: string;
}

export class StatusField {
  readonly #name: "Cache-Status" | "X-Cache" | false;
  readonly #cache: string;

  constructor(name: "Cache-Status" | "X-Cache" | false, cache: string) {
    this.#name = name;
    this.#cache = cache;
  }

  get name(): string | false {
    return this.#name;
  }

  /** `ttl` in seconds; negative if stale. */
  hit(ttl: number): string {
    if (this.#name === "X-Cache") return ttl < 0 ? "STALE" : "HIT";
    return `${this.#cache}; hit; ttl=${ttl}`;
  }

  forwarded({ reason, status, isStored, detail }: Forwarded): string {
    if (this.#name === "X-Cache") return xCache(reason, status);
    let text = `${this.#cache}; fwd=${reason}`;
    if (status !== undefined) text += `; fwd-status=${status}`;
    if (isStored) text += "; stored";
    if (detail !== undefined) text += `; detail=${detail}`;
    return text;
  }

  /** The list with this cache's value appended; caches closer to the origin come first (RFC 9211, 2). */
  add(headers: HeaderList, value: string): HeaderList {
    if (this.#name === false) return headers;
    const before = this.#name === "Cache-Status" ? fieldOf(headers, "cache-status") : undefined;
    return withField(headers, this.#name, before === undefined ? value : `${before}, ${value}`);
  }
}

function xCache(reason: ForwardReason, status: number | undefined): string {
  if (reason === "bypass" || reason === "method") return "BYPASS";
  return status === 304 ? "REVALIDATED" : "MISS";
}
