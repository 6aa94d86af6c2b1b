// Response body streams: reading a short body ahead, observing a stream with a tap, and draining one without a client.
import { nextTurn } from "../../core/event-loop.ts";
import type { Tap } from "../message/exchange.ts";

/** Some servers send streams of text as well, which a Response cannot be made of. Those are passed on and not stored. */
const isBytes = (value: unknown): boolean => value instanceof Uint8Array;

type Read = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

/** The whole body if it is available immediately, so that its ETag can go into the head; else an equivalent stream. */
export async function peek(
  body: ReadableStream<Uint8Array>,
): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const reader = body.getReader();
  const reads: Promise<Read>[] = [];
  let whole: Uint8Array | undefined;
  for (;;) {
    const read = reader.read();
    reads.push(read);
    // A failure is reported to the reader of the stream.
    const result = await Promise.race([read.catch(() => undefined), nextTurn()]);
    if (result === undefined || (!result.done && (whole !== undefined || !isBytes(result.value)))) break;
    if (result.done) return whole ?? new Uint8Array();
    whole = result.value;
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await (reads.shift() ?? reader.read());
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/**
 * The same stream, observed by the tap. While the tap wants bytes the source is read at full speed even if the client is
 * slow or cancels, because other requests wait for the body. `ended` is called in place of `tap.end`.
 */
export function observed(
  source: ReadableStream<Uint8Array>,
  tap: Tap,
  ended: () => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let isWanted = true;
  let isCancelled = false;
  let isCut = false;
  let isRefused = false;
  /** Nothing more comes: the body may be released after its end, while a slow client still reads. */
  let isOver = false;
  let reason: unknown;
  const cut = async (): Promise<void> => {
    isCut = true;
    await reader.cancel(reason);
  };
  void tap.released?.then(() => {
    isWanted = false;
    if (isCancelled) cut().catch(() => {});
  });
  let controller: ReadableStreamDefaultController<Uint8Array>;
  const step = async (): Promise<boolean> => {
    try {
      const { done, value } = await reader.read();
      if (done) {
        if (isCut) tap.abort();
        else if (!isRefused) ended();
        if (!isCancelled) controller.close();
        isOver = true;
        return false;
      }
      if (isWanted && !isBytes(value)) {
        isRefused = true;
        isWanted = false;
        tap.abort();
      }
      if (isWanted) isWanted = tap.chunk(value);
      if (!isCancelled) controller.enqueue(value);
      return true;
    } catch (error) {
      tap.abort();
      if (!isCancelled) controller.error(error);
      isOver = true;
      return false;
    }
  };
  const pump = async (): Promise<void> => {
    while (isWanted && (await step()));
    if (isCancelled && !isCut) await cut().catch(() => {});
  };
  let pumping: Promise<void> | undefined;
  return new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
      pumping = pump();
    },
    async pull() {
      await pumping;
      if (!isWanted && !isOver) await step();
    },
    async cancel(given) {
      isCancelled = true;
      reason = given;
      if (isWanted) return;
      tap.abort();
      await cut();
    },
  });
}

/** The same stream, cancelled when `watch` calls back; it returns how to stop watching. */
export function cancelledWhen(
  source: ReadableStream<Uint8Array>,
  watch: (gone: () => void) => () => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const stop = watch(() => void reader.cancel().catch(() => {}));
  // Reads nothing ahead: what is read belongs to the client.
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (!done) return controller.enqueue(value);
          stop();
          controller.close();
        } catch (error) {
          stop();
          throw error;
        }
      },
      cancel: (reason) => {
        stop();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Reads a body that is not sent to any client. `ended` is called in place of `tap.end`. */
export async function drain(
  source: ReadableStream<Uint8Array>,
  tap: Tap,
  isWanted: boolean,
  ended: () => void,
): Promise<void> {
  const reader = source.getReader();
  if (!isWanted) {
    ended();
    await reader.cancel();
    return;
  }
  // A body that nobody waits for any more may never have another chunk.
  void tap.released?.then(() => reader.cancel().catch(() => {}));
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!isBytes(value)) throw new TypeError("the body is not made of bytes");
      if (tap.chunk(value)) continue;
      await reader.cancel();
      break;
    }
    ended();
  } catch {
    tap.abort();
  }
}
