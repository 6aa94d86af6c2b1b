// Runs things when the present turn of the event loop is over, its promises included: all of them for the price of one.

let waiting: (() => void)[] = [];

/** `run` must not throw. */
export function atEndOfTurn(run: () => void): void {
  if (waiting.push(run) === 1) process.nextTick(runAll);
}

export const endOfTurn = (): Promise<void> => new Promise(atEndOfTurn);

function runAll(): void {
  const runs = waiting;
  waiting = [];
  for (const run of runs) run();
}
