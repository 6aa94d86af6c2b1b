// Real middleware of Express, inside and outside of the cache: two users visit, log in, post and log out, and what each of them
// sees is what the same application shows without the cache.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import compression from "compression";
import cookieParser from "cookie-parser";
import cookieSession from "cookie-session";
import { doubleCsrf } from "csrf-csrf";
import express, { type Express, type RequestHandler } from "express";
import express4 from "express-4";
import { rateLimit } from "express-rate-limit";
import session from "express-session";
import helmet from "helmet";
import { createProxyMiddleware } from "http-proxy-middleware";
import methodOverride from "method-override";
import morgan from "morgan";
import multer from "multer";
import passport from "passport";
import serveStatic from "serve-static";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { httpCache } from "../../../src/web/express.ts";
import { memoryCache } from "../cache/memory-cache.ts";
import { listen } from "./subject.ts";
import { type Client, expectHit, type More, type Place, visits } from "./visits.ts";

/** What the handlers find on a request, whoever put it there. */
interface Visit extends express.Request {
  session?: { user?: string; views?: number; token?: string } | null;
  user?: { name: string };
  login?(user: { name: string }, done: (error?: unknown) => void): void;
  logout?(done: (error?: unknown) => void): void;
  csrfToken?(): string;
}

interface Row {
  /** Made anew for every application. */
  readonly middleware: () => RequestHandler[] | Promise<RequestHandler[]>;
  readonly more?: More;
}

const plainUser = (request: Visit): string | undefined =>
  /(?:^|; )user=(\w+)/.exec(request.headers.cookie ?? "")?.[1];
const userOf = (request: Visit): string =>
  request.user?.name ?? request.session?.user ?? plainUser(request) ?? "nobody";

/** A site that greets its user, counts posts, and takes uploads. */
function routes(app: Express): void {
  let posts = 0;
  app.get("/page", (request: Visit, response) => {
    // As a cookie session that is renewed with every visit.
    if (request.session?.user !== undefined) request.session.views = (request.session.views ?? 0) + 1;
    response.type("text").send(`page of ${userOf(request)}`);
  });
  app.get("/form", (request: Visit, response) => {
    if (request.session && request.csrfToken === undefined) request.session.token ??= randomUUID();
    response.type("text").send(`token=${request.csrfToken?.() ?? request.session?.token ?? ""}`);
  });
  app.get("/posts", (_request, response) => void response.json({ posts }));
  app.post("/posts", (_request, response) => void response.status(201).json({ posts: ++posts }));
  app.delete("/posts", (_request, response) => {
    posts = 0;
    response.status(204).end();
  });
  app.post("/login", (request: Visit, response, next) => {
    const name = String(request.query.user);
    const done = (error?: unknown): void => {
      if (error === undefined || error === null) response.send(`hello ${name}`);
      else next(error);
    };
    if (request.login !== undefined) request.login({ name }, done);
    else if (request.session) {
      request.session.user = name;
      done();
    } else {
      response.append("Set-Cookie", `user=${name}; Path=/`);
      done();
    }
  });
  app.post("/logout", (request: Visit, response, next) => {
    const done = (error?: unknown): void => {
      if (error === undefined || error === null) response.send("bye");
      else next(error);
    };
    if (request.logout !== undefined) request.logout(done);
    else if (request.session) {
      request.session.user = undefined as never;
      done();
    } else {
      response.append("Set-Cookie", "user=; Path=/; Max-Age=0");
      done();
    }
  });
  app.post("/upload", (request, response) => {
    response.send(`got ${(request as { file?: { size: number } }).file?.size}`);
  });
}

const secret = "a secret of the test";

const withSession = (): RequestHandler => session({ secret, resave: false, saveUninitialized: true });

const ROWS: Record<string, Row> = {
  "express-session": { middleware: () => [withSession()] },
  "cookie-session": { middleware: () => [cookieSession({ name: "kept", keys: [secret] })] },
  "cookie-parser": { middleware: () => [cookieParser(secret)] },
  passport: {
    middleware: () => {
      const own = new passport.Passport();
      own.serializeUser((user: { name: string }, done: (error: null, id: string) => void) =>
        done(null, user.name),
      );
      own.deserializeUser((name: string, done: (error: null, user: object) => void) => done(null, { name }));
      return [withSession(), own.initialize(), own.session()];
    },
  },
  "csrf-csrf": {
    middleware: () => {
      const { doubleCsrfProtection } = doubleCsrf({
        getSecret: () => secret,
        getSessionIdentifier: (request) => (request as Visit & { sessionID: string }).sessionID,
        getCsrfTokenFromRequest: (request) => request.headers["x-csrf-token"],
        cookieName: "csrf",
        cookieOptions: { secure: false },
        skipCsrfProtection: (request) => request.path !== "/posts",
      });
      return [withSession(), cookieParser(), doubleCsrfProtection];
    },
    more: async (user, other) => {
      const tokenOf = async (client: Client) => (await client.get("/form")).body.replace("token=", "");
      const [own, foreign] = [await tokenOf(user), await tokenOf(other)];
      expect(own).not.toBe(foreign);
      expect((await user.post("/posts", { "x-csrf-token": foreign })).status).toBe(403);
      return user.post("/posts", { "x-csrf-token": own });
    },
  },
  helmet: { middleware: () => [helmet()] },
  "helmet with a nonce": {
    middleware: () => {
      let nonces = 0;
      const policy: RequestHandler = (request, response, next) =>
        helmet({
          contentSecurityPolicy: { directives: { scriptSrc: ["'self'", `'nonce-${++nonces}'`] } },
        })(request, response, next);
      return [policy];
    },
  },
  compression: {
    middleware: () => [compression({ threshold: 0 })],
    more: async (user, _other, place) => {
      for (const visit of [1, 2, 3]) {
        for (const encoding of ["gzip", "identity"]) {
          const got = await user.getAnonymously("/posts", { "accept-encoding": encoding });
          expect(got.headers["content-encoding"]).toBe(encoding === "gzip" ? "gzip" : undefined);
          if (visit > 1) expectHit(got, place);
        }
      }
    },
  },
  morgan: {
    middleware: () => [morgan("combined", { stream: { write: () => {} } })],
  },
  "express-rate-limit": {
    middleware: () => [rateLimit({ limit: 1_000, windowMs: 60_000, standardHeaders: true, validate: false })],
  },
  multer: {
    middleware: () => [multer({ storage: multer.memoryStorage() }).single("file")],
    more: (user) => {
      const body =
        '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n12345\r\n--b--\r\n';
      return user.post("/upload", { "content-type": "multipart/form-data; boundary=b" }, body);
    },
  },
  "method-override": {
    middleware: () => [methodOverride("X-HTTP-Method-Override")],
    more: async (user, other) => {
      await other.get("/posts");
      await user.post("/posts", { "x-http-method-override": "DELETE" });
      expect((await other.get("/posts")).body).toBe('{"posts":0}');
    },
  },
  "serve-static": {
    middleware: () => {
      const folder = mkdtempSync(join(tmpdir(), "xcache-static-"));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      writeFileSync(join(folder, "file.txt"), "0123456789");
      return [serveStatic(folder, { maxAge: 60_000 })];
    },
    more: async (user, _other, place) => {
      for (let time = 0; time < 2; time++)
        expect((await user.getAnonymously("/file.txt")).body).toHaveLength(10);
      const part = await user.getAnonymously("/file.txt", { range: "bytes=2-4" });
      expect([part.status, part.body]).toEqual([206, "234"]);
      // Outside, the file is sent before the cache is reached.
      if (place === "inside") expectHit(part, place);
    },
  },
  "http-proxy-middleware": {
    middleware: async () => {
      const upstream = express();
      routes(upstream);
      const port = await listen(upstream);
      return [createProxyMiddleware({ target: `http://127.0.0.1:${port}` }) as RequestHandler];
    },
  },
};

async function serve({ middleware }: Row, place: Place, create: typeof express): Promise<number> {
  const app = create();
  // Error pages without a stack.
  app.set("env", "production");
  // Express sets it before the cache is reached, so that helmet can remove it from what it sees only.
  app.disable("x-powered-by");
  const own = await middleware();
  const cache = httpCache({ cache: memoryCache().cache, ttl: 300 });
  if (place === "outside") app.use(...own, cache);
  else if (place === "inside") app.use(cache, ...own);
  else app.use(...own);
  routes(app);
  return listen(app);
}

/** The middleware that patches responses is tried on the older major as well. */
const ON_EXPRESS_4 = ["express-session", "cookie-session", "compression", "passport"];

describe.each([
  ...Object.entries(ROWS).map(([name, row]) => [name, row, express] as const),
  ...ON_EXPRESS_4.map((name) => [`${name} on Express 4`, ROWS[name]!, express4] as const),
])("%s", (_, row, create) => {
  test("shows every user the same outside of the cache, inside of it and without it", async () => {
    // Express writes there what its handlers threw.
    vi.spyOn(console, "error").mockImplementation(() => {});
    onTestFinished(() => void vi.restoreAllMocks());
    const visitsIn = async (place: Place) => visits(await serve(row, place, create), place, row.more);
    const expected = await visitsIn("without the cache");
    expect(await visitsIn("outside"), "outside").toEqual(expected);
    expect(await visitsIn("inside"), "inside").toEqual(expected);
  });
});
