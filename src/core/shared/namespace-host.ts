// What the namespaces of a shared store have in common.
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
  /** Grows when the store is disconnected: a load that is still running leaves it alone from then on. */
  readonly session: number;
  readonly backend: OutboxBackend;
  readonly clock: Clock;
  readonly codec: Codec;
  readonly guard: Guard;
  readonly stamps: StampBook;
  /** The in-process tier, where there is one and the store keeps it coherent. */
  readonly near: NearTier | undefined;
  /** A namespace is there from now on, and is told what concerns its entries. */
  opened(space: OpenNamespace): void;
  report(error: Error): void;
  /** Calls `listener` whenever the store says that a key may have changed; returns how to stop. */
  listen(key: string, listener: () => void): () => void;
  /** The store has carried these out; a server that takes over may not know. */
  confirmed(remedies: () => readonly PendingInvalidation[]): void;
  /** The store may not have carried these out: they are, before it is asked anything else. */
  unconfirmed(remedies: () => readonly PendingInvalidation[], error: unknown): void;
}

export interface OpenNamespace extends Namespace {
  readonly names: Spelling;
  /** The store says that one of its entries has changed; undefined: any may have. */
  pushed(spelled: string | undefined): void;
}
