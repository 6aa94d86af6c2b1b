// Async contexts (AsyncLocalStorage): a call continues in its caller's, and what outlives a call is opened outside of any.
import { AsyncResource } from "./lazy-builtin.ts";

/** Created when the library is loaded, so that it carries the context of no caller. */
const outside = new AsyncResource("XCache", { requireManualDestroy: true });

/** Runs `open` outside of any caller's context: a socket or timer retains the context it was opened in. */
export const outsideCallers = <T>(open: () => T): T => outside.runInAsyncScope(open);

/** Created in a caller's context, to which it returns from a callback of somebody else's. */
export class CallerContext extends AsyncResource {
  constructor() {
    super("XCacheCall", { requireManualDestroy: true });
  }
}
