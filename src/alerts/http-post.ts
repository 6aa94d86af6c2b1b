// One HTTP POST on its own connection; of the response only the head and a bounded part of the body are read.
import { nodeHttp, nodeHttps } from "../core/lazy-builtin.ts";

export interface PostResponse {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
}

/** Enough for any reasonable response; the connection is closed after that. */
const MAX_RESPONSE_BYTES = 16_384;

/**
 * Resolves with the response head once the exchange is over, or rejects with the network error or the signal's reason.
 * Redirects are not followed. The status counts even if the body is cut off.
 */
export function post({ url, headers, body, signal }: Post): Promise<PostResponse> {
  return new Promise((resolve, reject) => {
    const { request } = url.protocol === "https:" ? nodeHttps() : nodeHttp();
    const bytes = Buffer.from(body);
    let response: PostResponse | undefined;
    let failure: Error | undefined;
    const outgoing = request(url, {
      method: "POST",
      headers: { ...headers, "content-length": String(bytes.length) },
      // No keep-alive: alerts are rare, and an idle connection would only go stale.
      agent: false,
    });
    const onAbort = (): void => {
      failure ??= signal.reason as Error;
      outgoing.destroy();
    };
    outgoing.once("response", (incoming) => {
      response = { status: incoming.statusCode ?? 0, retryAfter: incoming.headers["retry-after"] };
      let left = MAX_RESPONSE_BYTES;
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
      signal.removeEventListener("abort", onAbort);
      if (response !== undefined) resolve(response);
      else reject(failure ?? new Error("the connection was closed without a response"));
    });
    signal.addEventListener("abort", onAbort, { once: true });
    outgoing.end(bytes);
    if (signal.aborted) onAbort();
  });
}
