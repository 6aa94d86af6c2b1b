import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redactError, redactText, redactUrl } from "../../src/core/redact.ts";
import { soon } from "../support/pace.ts";
import { MARK, secret } from "../support/secret.ts";

const anyText = fc.array(fc.nat(0xffff), { maxLength: 30 }).map((units) => String.fromCharCode(...units));
const scheme = fc.constantFrom("redis", "rediss", "unix", "redis+cluster", "memcached", "http", "X-1.2");
const tail = fc.constantFrom("localhost", "h1:6379,h2/0", "[::1]:6379/0?db=1", "/run/redis.sock", "");

describe("redactUrl", () => {
  it.each([
    ["redis://localhost:6379/0", "redis://localhost:6379/0"],
    ["redis://user:pw@localhost:6379/0", "redis://***@localhost:6379/0"],
    ["redis://:pw@[::1]:6379", "redis://***@[::1]:6379"],
    ["redis+sentinel://u:p@h1:1,h2:2/name", "redis+sentinel://***@h1:1,h2:2/name"],
    ["redis://u:p@ss@host", "redis://***@host"],
    ["redis://u:p/a?b#c@host/0", "redis://***@host/0"],
    ["user:pw@host", "***@host"],
    ["redis:u:pw@host", "***@host"],
    ["user:x://pw@host", "***@host"],
    ["redis://user:pw", "redis://user:***"],
    ["redis://user:pw/more", "redis://user:***"],
    ["redis://h1:1,user:pw,more?a#b", "redis://h1:1,user:***"],
    ["unix://user:pw#more", "unix://user:***"],
    ["redis://h:1/0?pw=a&b", "redis://h:1/0?pw=***"],
    ["redis://h:1/0?sentinel_password=a&b#c", "redis://h:1/0?sentinel_password=***"],
    ["redis://h/0?db=1&password=x@y", "redis://***"],
    ["https://h/x?api_key=1", "https://h/x?api_key=***"],
    ["rediss://h?tls_key_file=/etc/key.pem", "rediss://h?tls_key_file=/etc/key.pem"],
    ["memory://?max_entries=10", "memory://?max_entries=10"],
    ["redis://[::1]:6379,h2:1", "redis://[::1]:6379,h2:1"],
    ["localhost:6379", "localhost:6379"],
    ["", ""],
    ["://", "://"],
    ["@", "***@"],
  ])("%s is shown as %s", (url, safe) => {
    expect(redactUrl(url)).toBe(safe);
  });

  it("no user name or password is ever shown, raw or encoded", () => {
    fc.assert(
      fc.property(scheme, secret, secret, fc.boolean(), tail, (kind, user, password, encoded, rest) => {
        const put = encoded ? encodeURIComponent : (text: string) => text;
        expect(redactUrl(`${kind}://${put(user)}:${put(password)}@${rest}`)).not.toContain(MARK);
        expect(redactUrl(`${kind}://:${put(password)}@${rest}`)).not.toContain(MARK);
        expect(redactUrl(`${put(user)}:${put(password)}@${rest}`)).not.toContain(MARK);
      }),
    );
  });

  it("no secret option is ever shown, raw or encoded", () => {
    const option = fc.constantFrom("password", "sentinel_password", "auth_token", "clientSecret", "PWD");
    fc.assert(
      fc.property(secret, option, fc.boolean(), (value, name, encoded) => {
        const put = encoded ? encodeURIComponent(value) : value;
        expect(redactUrl(`redis://host/0?db=1&${name}=${put}`)).not.toContain(MARK);
      }),
    );
  });

  it("it never throws, whatever the string", () => {
    fc.assert(fc.property(anyText, (text) => typeof redactUrl(text) === "string"));
  });

  it("an address without credentials is shown in full", () => {
    fc.assert(
      fc.property(fc.domain(), fc.integer({ min: 1, max: 65_535 }), fc.nat(15), (host, port, database) => {
        const url = `redis://${host}:${port}/${database}`;
        return redactUrl(url) === url;
      }),
    );
  });
});

describe("redactText", () => {
  it.each([
    ["connect ECONNREFUSED 127.0.0.1:6379", "connect ECONNREFUSED 127.0.0.1:6379"],
    ["cannot reach redis://localhost:6379: refused", "cannot reach redis://localhost:6379: refused"],
    ["cannot reach redis://u:p@h:6379: refused", "cannot reach redis://***@h:6379: refused"],
    ['tried "redis://u:p@h1", "rediss://:q@h2"', 'tried "redis://***@h1", "rediss://***@h2"'],
    ["first redis://u:p@h1\nthen me@example.org", "first redis://***@h1\nthen me@example.org"],
    ["url=redis://u:p@h", "url=redis://***@h"],
    ["3redis://u:p@h", "3redis://***@h"],
    ["see (http://x.org/a) now", "see (http://x.org/a) now"],
    ["redis://user:secret refused", "redis://user:*** refused"],
    ["GET https://h/p?token=abc failed", "GET https://h/p?token=*** failed"],
    ["", ""],
  ])("%j becomes %j", (text, safe) => {
    expect(redactText(text)).toBe(safe);
  });

  it("no user name or password on a line is ever shown, raw or encoded", () => {
    const onOneLine = secret.filter((text) => !/[\r\n]|:\/\//.test(text));
    const around = fc.constantFrom("", "failed: ", 'cannot reach "', "a=b, ", "redis://h1 then ");
    fc.assert(
      fc.property(
        around,
        scheme,
        onOneLine,
        onOneLine,
        fc.boolean(),
        tail,
        (before, kind, user, password, encoded, rest) => {
          const put = encoded ? encodeURIComponent : (text: string) => text;
          const text = `${before}${kind}://${put(user)}:${put(password)}@${rest} and so on`;
          expect(redactText(text)).not.toContain(MARK);
          expect(redactText(`${text}\n${text}`)).not.toContain(MARK);
        },
      ),
    );
  });

  it("a long text does not take long", () => {
    for (const piece of ["a", "?pass", "redis://", "a:", "@", ",a", ":// "]) {
      const started = performance.now();
      redactText(piece.repeat(100_000));
      redactUrl(piece.repeat(100_000));
      expect(performance.now() - started, piece).toBeLessThan(soon(2_000));
    }
  });
});

describe("redactError", () => {
  const named = (message: string): Error => Object.assign(new Error(message), { code: "ECONNREFUSED" });

  it("changes the error itself and its causes", () => {
    const error = new Error("at redis://u:secret@host", { cause: new Error("redis://:secret@host") });
    expect(redactError(error)).toBe(error);
    expect(`${error.message} ${error.stack} ${(error.cause as Error).message}`).not.toContain("secret");
  });

  it("returns another error for one that cannot be changed, alone or as a cause", () => {
    const frozen = Object.freeze(named("at redis://u:secret@host"));
    for (const error of [frozen, Object.assign(new Error("failed"), { cause: frozen })]) {
      const { message, stack, cause } = redactError(error);
      expect(`${message} ${stack} ${cause}`).not.toContain("secret");
    }
    expect(redactError(frozen)).toMatchObject({ message: "at redis://***@host", code: "ECONNREFUSED" });
  });

  it("returns another error for one that cannot be read", () => {
    const unreadable = Object.defineProperty(new Error(), "message", {
      get: () => {
        throw new Error("no");
      },
    });
    expect(redactError(unreadable)).toMatchObject({ message: "an error that cannot be read" });
  });
});
