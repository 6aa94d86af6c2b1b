// A record that comes by a promise, for whoever is told of it.
import type { RecordTaker } from "./backend.ts";
import type { StoreRecord } from "./record.ts";

export function deliverTo(taker: RecordTaker, reading: Promise<StoreRecord | undefined>): void {
  reading.then(
    (record) => taker.take(record),
    (error: unknown) => taker.fail(error),
  );
}
