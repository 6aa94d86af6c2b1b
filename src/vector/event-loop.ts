// Sharing the event loop during long work.

/** Lets everybody else have a turn. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
