// A Request and the Response it gets, as the engine sees them.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Exchange, Reply, RequestChange, RequestFacts, ResponseHead, Tap } from "./exchange.ts";
import type { HeaderList } from "./header-list.ts";

export type FetchHandler<Rest extends unknown[] = []> = (
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>;

type Body = ConstructorParameters<typeof Response>[0];

class FetchRequest implements RequestFacts {
  readonly method: string;
  readonly isSecure: boolean;
  readonly host: string;
  readonly target: string;
  readonly #headers: Headers;

  constructor({ method, url, headers }: Request) {
    const authority = url.indexOf("//") + 2;
    const path = url.indexOf("/", authority);
    const fragment = url.indexOf("#", path);
    this.method = method.toUpperCase();
    this.isSecure = url.startsWith("https:");
    this.host = url.slice(
      url.lastIndexOf("@", path) < authority ? authority : url.lastIndexOf("@", path) + 1,
      path,
    );
    this.target = fragment < 0 ? url.slice(path) : url.slice(path, fragment);
    this.#headers = headers;
  }

  header(name: string): string | undefined {
    return this.#headers.get(name) ?? undefined;
  }

  headerNames(): Iterable<string> {
    return this.#headers.keys();
  }
}

export class FetchExchange implements Exchange<Request> {
  readonly request: FetchRequest;
  readonly native: Request;
  readonly response: Promise<Response>;
  readonly #handler: FetchHandler;
  /** Nobody waits for the response. */
  readonly #isDetached: boolean;
  #respond: (response: Response) => void = () => {};
  /** Tells the client that the handler failed. */
  fail: (error: unknown) => void = () => {};

  constructor(request: Request, handler: FetchHandler, isDetached = false) {
    this.#isDetached = isDetached;
    this.request = new FetchRequest(request);
    this.native = request;
    this.#handler = handler;
    this.response = new Promise((resolve, reject) => {
      this.#respond = resolve;
      this.fail = reject;
    });
  }

  reply({ status, message, headers, body }: Reply): void {
    const bytes = typeof body === "string" ? Buffer.from(body, "latin1") : body;
    this.#respond(responseOf((bytes ?? null) as Body, { status, message, headers }));
  }

  async forward(change: RequestChange | undefined, tap: Tap): Promise<void> {
    const response = await this.#handler(change === undefined ? this.native : changed(this.native, change));
    // Nothing of these can be built anew: a failed network, another protocol.
    if (response.status < 200) return this.#respond(response);
    const head: ResponseHead = {
      status: response.status,
      message: response.statusText,
      headers: [...response.headers].flat(),
    };
    if (response.body === null) return this.#send(tap, head, null, new Uint8Array());
    if (!tap.wantsWhole) return this.#send(tap, head, response.body);
    const source = await peek(response.body);
    return this.#send(tap, head, source, source instanceof Uint8Array ? source : undefined);
  }

  get canRunAgain(): boolean {
    return this.request.method === "GET" && !this.#isDetached;
  }

  /** The client's signal must not end what others wait for. */
  background(): FetchExchange {
    const { url, method, headers } = this.native;
    return new FetchExchange(new Request(url, { method, headers }), this.#handler, true);
  }

  async #send(
    tap: Tap,
    head: ResponseHead,
    source: ReadableStream<Uint8Array> | Uint8Array | null,
    whole?: Uint8Array,
  ): Promise<void> {
    const verdict = tap.head(head, whole);
    await verdict.settled;
    const isStream = source instanceof ReadableStream;
    if (!isStream) tap.end();
    if (verdict.head === undefined || this.#isDetached) {
      if (isStream) await drain(source, tap, verdict.wantsBody);
      return;
    }
    const body = isStream && verdict.wantsBody ? watched(source, tap) : source;
    this.#respond(responseOf(body as Body, verdict.head));
  }
}

function responseOf(body: Body, { status, message, headers }: ResponseHead): Response {
  return new Response(status === 304 || status === 204 || status === 205 ? null : body, {
    status,
    statusText: message,
    headers: headersOf(headers),
  });
}

function headersOf(list: HeaderList): Headers {
  const headers = new Headers();
  for (let at = 0; at < list.length; at += 2) headers.append(list[at]!, list[at + 1]!);
  return headers;
}

function changed(request: Request, { remove, set }: RequestChange): Request {
  if (remove.length === 0 && set.length === 0) return request;
  const headers = new Headers(request.headers);
  for (const name of remove) headers.delete(name);
  for (let at = 0; at < set.length; at += 2) headers.set(set[at]!, set[at + 1]!);
  return new Request(request, { headers });
}

type Read = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

/** All of a body that is at hand, so that its ETag can go with its head; else a stream, begun but whole. */
async function peek(body: ReadableStream<Uint8Array>): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const reader = body.getReader();
  const reads: Promise<Read>[] = [];
  let whole: Uint8Array | undefined;
  for (;;) {
    const read = reader.read();
    reads.push(read);
    // A failure is the business of whoever reads the stream.
    const result = await Promise.race([read.catch(() => undefined), nextTurn(undefined)]);
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
function watched(source: ReadableStream<Uint8Array>, tap: Tap): ReadableStream<Uint8Array> {
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
async function drain(source: ReadableStream<Uint8Array>, tap: Tap, isWanted: boolean): Promise<void> {
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
