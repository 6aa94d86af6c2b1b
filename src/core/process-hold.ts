// Keeps the process alive while somebody waits for an answer. To hold and let go of a socket or timer for every answer is
// dear; one timer stands for all of them, and is let go of a moment after the last.

const MOMENT_MS = 50;

let waiting = 0;
let timer: NodeJS.Timeout | undefined;

/** Call `releaseProcess` once for it. */
export function holdProcess(): void {
  waiting++;
  timer ??= setInterval(letGo, MOMENT_MS);
}

export function releaseProcess(): void {
  waiting--;
}

function letGo(): void {
  if (waiting > 0) return;
  clearInterval(timer);
  timer = undefined;
}
