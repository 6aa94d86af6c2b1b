// Streams of response bodies on their way: begun to see whether they are short, watched by a tap, read for nobody.
import { nextTurn } from "../../core/event-loop.ts";
import type { Tap } from "../message/exchange.ts";

type Read = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

/** All of a body that is at hand, so that its ETag can go with its head; else a stream, begun but whole. */
export async function peek(
  body: ReadableStream<Uint8Array>,
): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const reader = body.getReader();
  const reads: Promise<Read>[] = [];
  let whole: Uint8Array | undefined;
  for (;;) {
    const read = reader.read();
    reads.push(read);
    // A failure is the business of whoever reads the stream.
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
 * The same stream, seen by the tap. While the tap wants the bytes they are read as fast as they come, whether or not the
 * client takes them: others wait for them. A client that leaves then leaves alone.
 */
export function watched(source: ReadableStream<Uint8Array>, tap: Tap): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  let isWanted = true;
  let hasLeft = false;
  let controller: ReadableStreamDefaultController<Uint8Array>;
  const step = async (): Promise<boolean> => {
    try {
      const { done, value } = await reader.read();
      if (done) {
        tap.end();
        if (!hasLeft) controller.close();
        return false;
      }
      if (isWanted) isWanted = tap.chunk(value);
      if (!hasLeft) controller.enqueue(value);
      return true;
    } catch (error) {
      tap.abort();
      if (!hasLeft) controller.error(error);
      return false;
    }
  };
  const pump = async (): Promise<void> => {
    while (isWanted && (await step()));
    if (hasLeft && !isWanted) await reader.cancel().catch(() => {});
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
      hasLeft = true;
      if (!isWanted) {
        tap.abort();
        await reader.cancel(reason);
      }
    },
  });
}

/** Reads what nobody is sent. */
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
