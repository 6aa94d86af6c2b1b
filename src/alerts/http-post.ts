// One HTTP exchange: a POST on a connection of its own, of whose answer only the head and a few bytes are read.
import { nodeHttp, nodeHttps } from "../core/lazy-builtin.ts";

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

/** What a polite receiver writes fits; whoever writes more is cut off. */
const MOST_ANSWER_BYTES = 16_384;

/**
 * Resolves with the answer's head once the exchange is over, or rejects with the network's error or the signal's
 * reason. Nothing is followed, whatever the answer says. The status stands, however the body ends.
 */
export function post({ url, headers, body, signal }: Post): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { request } = url.protocol === "https:" ? nodeHttps() : nodeHttp();
    const bytes = Buffer.from(body);
    let answer: Answer | undefined;
    let failure: Error | undefined;
    const outgoing = request(url, {
      method: "POST",
      headers: { ...headers, "content-length": String(bytes.length) },
      // A connection of its own, closed afterwards: alerts are rare, and a kept one would only grow stale.
      agent: false,
    });
    const giveUp = (): void => {
      failure ??= signal.reason as Error;
      outgoing.destroy();
    };
    outgoing.once("response", (incoming) => {
      answer = { status: incoming.statusCode ?? 0, retryAfter: incoming.headers["retry-after"] };
      let left = MOST_ANSWER_BYTES;
      incoming.on("data", (chunk: Buffer) => {
        left -= chunk.length;
        if (left < 0) outgoing.destroy();
      });
      incoming.on("error", () => {});
    });
    outgoing.on("error", (error) => {
      failure ??= error;
    });
    outgoing.once("close", () => {
      signal.removeEventListener("abort", giveUp);
      if (answer !== undefined) resolve(answer);
      else reject(failure ?? new Error("the connection was closed without an answer"));
    });
    signal.addEventListener("abort", giveUp, { once: true });
    outgoing.end(bytes);
    if (signal.aborted) giveUp();
  });
}
