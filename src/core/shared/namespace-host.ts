// What a shared store offers its namespaces.
import type { Clock } from "../clock.ts";
import type { Codec } from "../codec.ts";
import type { PendingInvalidation } from "../invalidation/outbox.ts";
import type { OutboxBackend } from "../invalidation/outbox-backend.ts";
import type { StampBook } from "../invalidation/stamps.ts";
import type { Spelling } from "../keys.ts";
import type { Namespace } from "../namespace.ts";
import type { NearTier } from "../near/pushed-near.ts";
import type { Guard } from "../resilience/guard.ts";

export interface NamespaceHost {
  /** Incremented on disconnect: a load that is still running then leaves the store alone. */
  readonly session: number;
  readonly backend: OutboxBackend;
  readonly clock: Clock;
  readonly codec: Codec;
  readonly guard: Guard;
  readonly stamps: StampBook;
  /** The near tier, where one is configured. */
  readonly near: NearTier | undefined;
  /** Registers a namespace for pushes and evictions of its entries. */
  opened(namespace: OpenNamespace): void;
  report(error: Error): void;
  /** Calls `listener` whenever the store reports that a key may have changed; returns how to stop. */
  listen(key: string, listener: () => void): () => void;
  /** Resolves after this time, or when the store is disconnected. */
  pause(ms: number): Promise<void>;
  /** The store has acknowledged these; a replica that takes over may not have them. */
  confirmed(pending: () => readonly PendingInvalidation[]): void;
  /** How many failovers have been dealt with. */
  readonly failovers: number;
  /** A failover came before the last acknowledgement of these: what its former server had acknowledged may be lost. */
  interrupted(pending: () => readonly PendingInvalidation[]): void;
  /** The outcome of these is unknown: they are delivered before the store is asked for what they concern. */
  unconfirmed(pending: () => readonly PendingInvalidation[], error: unknown): void;
}

export interface OpenNamespace extends Namespace {
  readonly names: Spelling;
  /** By which observers know it. */
  readonly self: Namespace;
  /** The store reports that one of its entries has changed; undefined: any may have. */
  pushed(spelled: string | undefined): void;
}
