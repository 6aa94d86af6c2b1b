// Puts a new stamp in the place of another: everything that is sealed with the old one is dead then.
import type { Backend } from "../backend.ts";
import type { Clock } from "../clock.ts";
import { BackendError, ConnectionError, OperationTimeoutError } from "../errors.ts";

/**
 * A store that has no room for the new one is asked to remove the old one: a missing stamp has the same effect. Returns
 * whether it was replaced at the first attempt.
 */
export async function replaceStamp(
  records: Pick<Backend, "write" | "take" | "now">,
  clock: Clock,
  key: string,
  lifetimeMs: number,
): Promise<boolean> {
  const expires = records.now() + lifetimeMs;
  try {
    await records.write({ key, record: { kind: "stamp", version: clock.token(), expires }, lifetimeMs });
    return true;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    await records.take(key);
    return false;
  }
}

/** The store was there and said no. */
export function isRefusal(error: unknown): boolean {
  return (
    error instanceof BackendError &&
    !(error instanceof ConnectionError) &&
    !(error instanceof OperationTimeoutError)
  );
}
