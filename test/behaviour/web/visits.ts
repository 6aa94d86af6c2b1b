// Two users and a stranger visit a site: what each of them gets, for comparing a site behind the cache with the same one without.
import { Agent, request as httpRequest } from "node:http";
import { gunzipSync } from "node:zlib";
import { expect, onTestFinished } from "vitest";

export type Place = "without the cache" | "outside" | "inside";

export interface Got {
  readonly status: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A browser without a cache: it keeps cookies, and notes what it got. */
export class Client {
  readonly notes: unknown[] = [];
  readonly cookies = new Map<string, string>();
  readonly #port: number;
  /** A client that closes its connection may be gone before the handler has ended. */
  readonly #agent = new Agent({ keepAlive: true });

  constructor(port: number) {
    this.#port = port;
    onTestFinished(() => this.#agent.destroy());
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Got> {
    return this.#ask("GET", path, headers);
  }

  post(path: string, headers: Record<string, string> = {}, body = ""): Promise<Got> {
    return this.#ask("POST", path, { "content-length": `${Buffer.byteLength(body)}`, ...headers }, body);
  }

  /** Without its cookies, as a client that may use the cache. */
  getAnonymously(path: string, headers: Record<string, string> = {}): Promise<Got> {
    return this.#ask("GET", path, headers, undefined, "");
  }

  async #ask(
    method: string,
    path: string,
    headers: Record<string, string>,
    body?: string,
    cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; "),
  ): Promise<Got> {
    const got = await new Promise<Got>((resolve, reject) => {
      const sent = httpRequest(
        {
          host: "127.0.0.1",
          port: this.#port,
          path,
          method,
          agent: this.#agent,
          headers: {
            host: "site.test",
            ...(method === "POST" ? { origin: "http://site.test" } : {}),
            ...(cookie === "" ? {} : { cookie }),
            ...headers,
          },
        },
        (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("error", reject);
          response.on("end", () => {
            const bytes = Buffer.concat(parts);
            const isPacked = response.headers["content-encoding"] === "gzip";
            const text = (isPacked ? gunzipSync(bytes) : bytes).toString();
            resolve({ status: response.statusCode!, body: text, headers: response.headers });
          });
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
    const set = [got.headers["set-cookie"] ?? []].flat();
    for (const line of set) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!;
      if (value === "") this.cookies.delete(name!);
      else this.cookies.set(name!, value!);
    }
    // Tokens and session ids are random: that they are set is what counts.
    const names = set.map((line) => line.split("=")[0]).sort();
    const fields = Object.keys(got.headers).filter((name) => !ADDED.has(name));
    const shown = got.body.replace(/token=.+/, "token=...");
    this.notes.push([method, path, got.status, shown, names, fields.sort()]);
    return got;
  }
}

/** Fields that belong to the cache, to the connection or to one moment. */
const ADDED = new Set([
  ...["age", "cache-control", "cache-status", "etag", "vary", "date", "content-length", "transfer-encoding"],
  ...["connection", "keep-alive", "last-modified"],
]);

/** Requests of a row, after the usual ones. */
export type More = (user: Client, other: Client, place: Place) => Promise<unknown>;

/** That the cache answered it, unless there is none. */
export function expectHit({ headers }: Got, place: Place): void {
  if (place !== "without the cache") expect(headers["cache-status"]).toMatch(/^xcache; hit/);
}

/** Two users and a stranger; returns what each of them got. */
export async function visits(port: number, place: Place, more?: More): Promise<unknown> {
  const [ann, bob, stranger] = [new Client(port), new Client(port), new Client(port)];
  const pageOf = async (client: Client): Promise<string> => (await client.get("/page")).body;
  // Before they have any cookie, and with the one they got.
  for (let time = 0; time < 2; time++) {
    const [first, second] = [await ann.get("/form"), await bob.get("/form")];
    if (first.body !== "token=") expect(first.body).not.toBe(second.body);
  }
  for (const client of [ann, ann, bob]) expect(await pageOf(client)).toBe("page of nobody");
  await ann.post("/login?user=ann");
  expect([await pageOf(ann), await pageOf(bob), await pageOf(ann)]).toEqual([
    "page of ann",
    "page of nobody",
    "page of ann",
  ]);
  await bob.post("/login?user=bob");
  expect([await pageOf(bob), await pageOf(ann), await pageOf(stranger)]).toEqual([
    "page of bob",
    "page of ann",
    "page of nobody",
  ]);
  const posts = async (client: Client): Promise<string> => (await client.get("/posts")).body;
  expect([await posts(stranger), await posts(ann)]).toEqual(['{"posts":0}', '{"posts":0}']);
  const { status } = await ann.post("/posts");
  const counted = `{"posts":${status === 201 ? 1 : 0}}`;
  for (const client of [stranger, bob, ann, new Client(port)]) expect(await posts(client)).toBe(counted);
  await ann.post("/logout");
  expect([await pageOf(ann), await pageOf(bob), await pageOf(new Client(port))]).toEqual([
    "page of nobody",
    "page of bob",
    "page of nobody",
  ]);
  await more?.(ann, bob, place);
  for (const name of ann.cookies.keys()) expect(ann.cookies.get(name)).not.toBe(bob.cookies.get(name));
  return [ann.notes, bob.notes, stranger.notes];
}
