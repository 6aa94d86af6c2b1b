// Carries out an action with its trace: reported before it happens, and what became of it afterwards. What was changed is kept,
// so that every open page shows it at once.
import { toError } from "../core/events.ts";
import type { CheckedOptions } from "./checked-options.ts";
import type { DashboardAction, DashboardResult } from "./options.ts";

export const READ_ONLY = "the dashboard is read-only";

interface Done {
  readonly deleted?: number;
}

/** Undefined if it is not allowed. Rejects with what `onAction` or `work` reject with. */
export async function audited<T extends Done>(
  { onAction, onResult }: Pick<CheckedOptions, "onAction" | "onResult">,
  action: DashboardAction,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const report = async (result: Pick<DashboardResult, "ok" | "deleted" | "error">): Promise<void> => {
    try {
      await onResult({ ...action, ...result });
    } catch (error) {
      // What is done is done: the visitor gets the answer.
      process.emitWarning(`dashboard(): onResult failed: ${toError(error).message}`, "XCacheWarning");
    }
  };
  let done: T | undefined;
  try {
    // Before it happens, so that nothing happens without a trace.
    await onAction(action);
    if (action.allowed) done = await work();
  } catch (error) {
    await report({ ok: false, error: toError(error).message });
    throw error;
  }
  const { deleted } = done ?? {};
  if (done === undefined) await report({ ok: false, error: READ_ONLY });
  else await report({ ok: true, ...(deleted !== undefined && { deleted }) });
  return done;
}

/** A page that missed more than these was away for longer than its list of keys is worth. */
const MOST = 50;

export type Changed = Pick<DashboardAction, "action" | "key" | "tag">;

export class Changes {
  #recent: readonly (Changed & { readonly id: number })[] = [];
  #count = 0;
  #next = new AbortController();

  /** Oldest first, numbered from 1. */
  get recent(): readonly Changed[] {
    return this.#recent;
  }

  /** Aborts with the next change. */
  get next(): AbortSignal {
    return this.#next.signal;
  }

  add(change: Changed): void {
    this.#recent = [...this.#recent, { ...change, id: ++this.#count }].slice(-MOST);
    this.#next.abort();
    this.#next = new AbortController();
  }
}
