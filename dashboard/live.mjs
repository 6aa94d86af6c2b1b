// The live figures: from a stream that is opened again whenever it ends, or one by one where streams do not get through.
import { call, lines } from "./api.mjs";

/** The server sends a line every two seconds. */
const SILENT_MS = 6_000;
const SOON_MS = 500;
const LATER_MS = 1_500;
const EVERY_MS = 2_000;

/** `body`: makes the request; `take`: gets each line, or `{ failed }`. Until the signal aborts. */
export async function follow(body, signal, take) {
  // A proxy that collects a whole answer before it passes it on never passes on a stream.
  let isHeldBack = false;
  while (!signal.aborted) {
    const silence = new Silence(signal);
    let wait = LATER_MS;
    try {
      if (isHeldBack) {
        take({ overview: await call("overview", body(), silence.signal) });
        wait = EVERY_MS;
      } else {
        for await (const line of lines("live", body(), silence.signal)) {
          silence.broken();
          take(line);
        }
        if (silence.isUnbroken) take({ failed: "the server ended the connection" });
      }
    } catch (error) {
      if (signal.aborted) return;
      if (silence.isOver && silence.isUnbroken) isHeldBack = !isHeldBack;
      if (silence.isUnbroken) take({ failed: messageOf(error, silence) });
    }
    // One that worked and was cut, by a proxy or while the machine slept, is only opened again.
    if (!silence.isUnbroken) wait = SOON_MS;
    silence.end();
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

const messageOf = (error, silence) => {
  if (silence.isOver) return "the server does not answer";
  return error.status === 401 ? "not allowed: open the address with its token again" : error.message;
};

/** Aborts a request on which nothing has arrived for too long. */
class Silence {
  #own = new AbortController();
  #timer;
  isUnbroken = true;

  constructor(signal) {
    this.signal = AbortSignal.any([signal, this.#own.signal]);
    this.#wait();
  }

  get isOver() {
    return this.#own.signal.aborted;
  }

  broken() {
    this.isUnbroken = false;
    this.end();
    this.#wait();
  }

  end() {
    clearTimeout(this.#timer);
  }

  #wait() {
    this.#timer = setTimeout(() => this.#own.abort(), SILENT_MS);
  }
}
