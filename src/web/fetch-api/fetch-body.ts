// Response body streams: reading a short body ahead, observing a stream with a tap, and draining one without a client.
import { nextTurn } from "../../core/event-loop.ts";
import type { Tap } from "../message/exchange.ts";

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
    if (result === undefined || (!result.done && whole !== undefined)) break;
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
 * slow or cancels, because other requests wait for the body.
 */
export function observed(source: ReadableStream<Uint8Array>, tap: Tap): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let isWanted = true;
  let isCancelled = false;
  let controller: ReadableStreamDefaultController<Uint8Array>;
  const step = async (): Promise<boolean> => {
    try {
      const { done, value } = await reader.read();
      if (done) {
        tap.end();
        if (!isCancelled) controller.close();
        return false;
      }
      if (isWanted) isWanted = tap.chunk(value);
      if (!isCancelled) controller.enqueue(value);
      return true;
    } catch (error) {
      tap.abort();
      if (!isCancelled) controller.error(error);
      return false;
    }
  };
  const pump = async (): Promise<void> => {
    while (isWanted && (await step()));
    if (isCancelled && !isWanted) await reader.cancel().catch(() => {});
  };
  let pumping: Promise<void> | undefined;
  return new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
      pumping = pump();
    },
    async pull() {
      await pumping;
      if (!isWanted) await step();
    },
    async cancel(reason) {
      isCancelled = true;
      if (!isWanted) {
        tap.abort();
        await reader.cancel(reason);
      }
    },
  });
}

/** Reads a body that is not sent to any client. */
export async function drain(source: ReadableStream<Uint8Array>, tap: Tap, isWanted: boolean): Promise<void> {
  const reader = source.getReader();
  if (!isWanted) {
    tap.end();
    await reader.cancel();
    return;
  }
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (tap.chunk(value)) continue;
      await reader.cancel();
      break;
    }
    tap.end();
  } catch {
    tap.abort();
  }
}
