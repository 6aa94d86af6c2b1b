// The visibility gate: transactions of the stream wait here until the database's snapshots see them. The stream tells of a
// commit before that: a read that follows an invalidation at once could store the old row for its whole ttl.
import type { TransactionTags } from "./transaction-tags.ts";

/** Above this number of tags, waiting transactions keep the names of their tables only. */
const MOST_TAGS = 100_000;

export class Gate<Snapshot> {
  readonly #isVisible: (snapshot: Snapshot, transaction: TransactionTags) => boolean;
  /** In the order of their commits. */
  #waiting: TransactionTags[] = [];
  #tags = 0;

  /** `isVisible`: whether snapshots taken from now on see a transaction. */
  constructor(isVisible: (snapshot: Snapshot, transaction: TransactionTags) => boolean) {
    this.#isVisible = isVisible;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** The position up to which nothing waits; undefined: nothing waits at all. */
  get oldest(): TransactionTags | undefined {
    return this.#waiting[0];
  }

  add(transaction: TransactionTags): void {
    this.#waiting.push(transaction);
    this.#tags += transaction.size;
    if (this.#tags <= MOST_TAGS) return;
    for (const each of this.#waiting) each.forgetRows();
    this.#tags = this.#waiting.reduce((sum, each) => sum + each.size, 0);
  }

  /** Those that the snapshot sees. They stay until `done`. */
  visible(snapshot: Snapshot): readonly TransactionTags[] {
    return this.#waiting.filter((transaction) => this.#isVisible(snapshot, transaction));
  }

  /** These have been invalidated. */
  done(transactions: readonly TransactionTags[]): void {
    const over = new Set(transactions);
    this.#waiting = this.#waiting.filter((each) => !over.has(each));
    this.#tags = this.#waiting.reduce((sum, each) => sum + each.size, 0);
  }
}
