import { describe, expect, it } from "vitest";
import type { AlertDefinition } from "../../../src/alerts/definition.ts";
import { loadMailer } from "../../../src/alerts/mailer.ts";
import { AlertManager } from "../../../src/alerts/manager.ts";
import type { AlertManagerOptions } from "../../../src/alerts/options.ts";
import { ConfigError, MissingPeerError } from "../../../src/core/errors.ts";
import { ManualClock } from "../../../src/testing/manual-clock.ts";
import { Figures } from "../../alerts/figures.ts";

const SMTP = { host: "127.0.0.1", from: "alerts@example.com" };
const RIGHT = {
  name: "low",
  metric: "hit_rate",
  threshold: 0.7,
  comparison: "less_than",
  webhookUrl: "https://example.com/hook",
} as const;

const managerOf = (options: AlertManagerOptions = {}): AlertManager =>
  new AlertManager(new Figures(), options, new ManualClock());

function thrownBy(work: () => unknown): Error {
  try {
    work();
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
}

/** The message with which addAlert rejects a definition with some fields changed; no alert may have been added. */
function refusalOf(changed: Record<string, unknown>): Error {
  const manager = managerOf({ smtp: SMTP });
  manager.start();
  const error = thrownBy(() => manager.addAlert({ ...RIGHT, ...changed } as AlertDefinition));
  expect(error).toBeInstanceOf(ConfigError);
  expect(manager.states()).toEqual([]);
  manager.addAlert(RIGHT);
  return error;
}

describe("addAlert refuses", () => {
  it.each([
    ["hit_rat", 'unknown metric "hit_rat": did you mean "hit_rate"?'],
    ["hitRate", 'unknown metric "hitRate": did you mean "hit_rate"?'],
    ["latency", 'unknown metric "latency": use one of hit_rate, avg_response_time'],
    [undefined, "metric must be one of hit_rate, avg_response_time"],
    ["__proto__", "unknown metric"],
  ])("the metric %s", (metric, message) => {
    expect(refusalOf({ metric }).message).toContain(message);
  });

  it.each([
    ["lessThan", 'unknown comparison "lessThan": did you mean "less_than"?'],
    ["<", 'unknown comparison "<": use one of less_than, greater_than, less_or_equal'],
    [5, "comparison must be one of less_than"],
    ["toString", "unknown comparison"],
  ])("the comparison %s", (comparison, message) => {
    expect(refusalOf({ comparison }).message).toContain(message);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, "0.7", undefined, null, 5n])(
    "the threshold %s",
    (threshold) => {
      expect(refusalOf({ threshold }).message).toContain("threshold must be a finite number, got ");
    },
  );

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, "5"])("`for` of %s", (seconds) => {
    expect(refusalOf({ for: seconds }).message).toContain(
      'for must be a finite number of seconds, at least 0, or a text such as "500ms", "30s" or "5m", got ',
    );
  });

  it.each([0, -1, Number.NaN, "1"])("a repeatInterval of %s", (repeatInterval) => {
    expect(refusalOf({ repeatInterval }).message).toContain(
      "repeatInterval must be a number of seconds, at least 1",
    );
  });

  it.each(["", "  ", 5, undefined, "x".repeat(257), "half a pair \ud800"])("the name %j", (name) => {
    expect(refusalOf({ name }).message).toContain(
      "name must be a non-empty string of at most 256 characters",
    );
  });

  it("an alert without a destination", () => {
    const error = refusalOf({ webhookUrl: undefined });
    expect(error.message).toBe('the alert "low" has no destination');
    expect(error).toMatchObject({
      code: "CONFIG_INVALID",
      hint: "Set webhookUrl, emailRecipients or both.",
    });
    expect(refusalOf({ webhookUrl: [] }).message).toContain("got an empty list");
    expect(refusalOf({ emailRecipients: [] }).message).toContain("got an empty list");
  });

  it("an unknown field, naming the nearest", () => {
    const error = refusalOf({ webhook_url: "https://example.com" });
    expect(error).toMatchObject({ code: "CONFIG_UNKNOWN_FIELD" });
    expect(error.message).toContain('did you mean "webhookUrl"?');
    expect(refusalOf({ treshold: 1 }).message).toContain('did you mean "threshold"?');
  });

  it("a duplicate name, and keeps the first alert", () => {
    const manager = managerOf();
    manager.addAlert(RIGHT);
    const error = thrownBy(() => manager.addAlert({ ...RIGHT, metric: "p99" }));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toBe('there is already an alert named "low"');
    manager.start();
    expect(manager.states()).toMatchObject([{ name: "low", metric: "hit_rate" }]);
  });

  it("a value that is not a definition at all", () => {
    for (const given of [undefined, null, "low", [RIGHT]]) {
      expect(thrownBy(() => managerOf().addAlert(given as never))).toBeInstanceOf(ConfigError);
    }
  });
});

describe("a webhook address", () => {
  it.each([
    ["ftp://example.com/x", 'got one with the scheme "ftp"'],
    ["file:///etc/passwd", 'got one with the scheme "file"'],
    ["javascript:alert(1)", "got another kind of URL"],
    ["example.com/hook", "got a string that is not an absolute URL"],
    ["localhost:8080/hook", "got another kind of URL"],
    ["/hook", "got a string that is not an absolute URL"],
    ["https://", "got a string that is not an absolute URL"],
    ["", "got a string that is not an absolute URL"],
    ["https://user%0d%0aX-Evil:1@example.com", "got credentials that cannot be sent in a header"],
    ["https://us%3aer:pass@example.com", "got credentials that cannot be sent in a header"],
    ["https://us%ffer:pass@example.com", "got credentials that cannot be sent in a header"],
  ])("such as %s is refused", (webhookUrl, message) => {
    expect(refusalOf({ webhookUrl }).message).toBe(`webhookUrl must be an http or https address, ${message}`);
  });

  it("is refused without revealing its secrets", () => {
    for (const webhookUrl of [
      "ftp://Zq9user:Zq9pass@example.com/Zq9path?token=Zq9",
      "Zq9user:Zq9pass@example.com/",
      "https://Zq9%3auser:Zq9pass@example.com/Zq9",
      "https//Zq9user:Zq9@example.com",
    ]) {
      const error = refusalOf({ webhookUrl });
      expect(`${error.stack}${JSON.stringify(error)}`).not.toContain("Zq9");
    }
  });

  it("that is invalid rejects the whole list", () => {
    expect(refusalOf({ webhookUrl: ["https://example.com", "nowhere"] }).message).toContain(
      "not an absolute URL",
    );
    expect(refusalOf({ webhookUrl: ["https://example.com", 5] }).message).toContain("got 5");
  });
});

describe("an email recipient", () => {
  it.each([
    "ops",
    "ops@",
    "@example.com",
    "a@b@example.com",
    "ops@example.com, other@example.com",
    "Ops <ops@example.com>",
    "ops@example.com\r\nBcc: all@example.com",
    "ops\n@example.com",
    "o ps@example.com",
    ".ops@example.com",
    "o..ps@example.com",
    '"o ps"@example.com',
    "ops@-example.com",
    "ops@exa mple.com",
    "ops@example.com/x",
    "ops@example.com?x",
    "ops@[127.0.0.1]",
    "ops@example..com",
    `${"x".repeat(65)}@example.com`,
    `ops@${"x".repeat(64)}.com`,
    "",
  ])("such as %j is refused", (address) => {
    const error = refusalOf({ webhookUrl: undefined, emailRecipients: ["ok@example.com", address] });
    expect(error.message).toContain("emailRecipients must be an email address such as ops@example.com, got ");
  });

  it.each(["ops@example.com", "o.p-s+cache@sub.example.com", "root@localhost", "ops@münchen.example"])(
    "such as %s is accepted",
    (address) => {
      const manager = managerOf({ smtp: SMTP });
      manager.addAlert({ ...RIGHT, emailRecipients: [address] });
      manager.start();
      expect(manager.states()).toHaveLength(1);
    },
  );

  it("needs a mail server", () => {
    const manager = managerOf();
    const error = thrownBy(() => manager.addAlert({ ...RIGHT, emailRecipients: ["ops@example.com"] }));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({ hint: "Pass smtp: { host, from } to new AlertManager()." });
    manager.start();
    expect(manager.states()).toEqual([]);
  });

  it("needs nodemailer, and says how to install it", () => {
    const absent = (): never => {
      throw Object.assign(new Error("Cannot find module"), { code: "MODULE_NOT_FOUND" });
    };
    const error = thrownBy(() => loadMailer(absent));
    expect(error).toBeInstanceOf(MissingPeerError);
    expect(error).toMatchObject({
      packageName: "nodemailer",
      installCommand: expect.stringMatching(/^npm install "?nodemailer@/),
    });
    const broken = new Error("broken");
    const failing = (): never => {
      throw broken;
    };
    expect(thrownBy(() => loadMailer(failing))).toBe(broken);
  });
});

describe("a manager refuses", () => {
  it.each([undefined, null, {}, "redis://localhost", 5])("%o as its cache", (cache) => {
    const error = thrownBy(() => new AlertManager(cache as never));
    expect(error).toMatchObject({ code: "ARGUMENT_INVALID" });
    expect(error.message).toContain("cache must be an XCache, got ");
  });

  it.each([
    [
      { interval: 0 },
      'interval must be a finite number of seconds, at least 0.001, or a text such as "500ms", "30s" or "5m", got 0',
    ],
    [{ interval: Number.POSITIVE_INFINITY }, "interval must be a finite number"],
    [{ interval: "30" }, 'got "30"'],
    [
      { repeatInterval: 0 },
      'repeatInterval must be a number of seconds, at least 1, or Infinity, or a text such as "500ms", "30s" or "5m", got 0',
    ],
    [{ deliveryTimeout: -1 }, "deliveryTimeout must be"],
    [{ instance: "" }, "instance must be"],
    [{ onError: "log" }, 'onError must be a function, got "log"'],
    [{ intervall: 5 }, 'did you mean "interval"?'],
    [{ smtp: { ...SMTP, from: "nobody" } }, "smtp.from must be an email address"],
    [{ smtp: { ...SMTP, from: "A\r\nBcc: x <a@example.com>" } }, "smtp.from must be an email address"],
    [{ smtp: { from: SMTP.from } }, "smtp.host must be"],
    [{ smtp: { ...SMTP, host: "smtp://example.com" } }, "smtp.host must be a host name"],
    [{ smtp: { ...SMTP, port: 0 } }, "smtp.port must be a whole number from 1 to 65535, got 0"],
    [{ smtp: { ...SMTP, secure: "yes" } }, "smtp.secure must be true or false"],
    [{ smtp: { ...SMTP, requireTls: 1 } }, "smtp.requireTls must be true or false"],
    [{ smtp: { ...SMTP, user: "u" } }, 'unknown option "user"'],
    [{ smtp: { ...SMTP, tls: { cert: "x" } } }, 'unknown option "cert"'],
    [{ smtp: "smtp://example.com" }, "options must be an object"],
  ])("the options %o", (options, message) => {
    const error = thrownBy(() => managerOf(options as AlertManagerOptions));
    expect(error).toBeInstanceOf(ConfigError);
    expect(error.message).toContain(message);
  });

  it("bad credentials without showing them", () => {
    for (const auth of [
      { user: "Zq9", pass: "" },
      { user: "", pass: "Zq9" },
      { user: "u", pass: { Zq9: 1 } },
    ]) {
      const error = thrownBy(() => managerOf({ smtp: { ...SMTP, auth } as never }));
      expect(error).toBeInstanceOf(ConfigError);
      expect(`${error.stack}`).not.toContain("Zq9");
    }
  });

  it("a bad timeout or option of stop, and a bad option of patterns", async () => {
    await expect(managerOf().stop({ timeout: Number.NaN })).rejects.toBeInstanceOf(ConfigError);
    await expect(managerOf().stop({ timout: 1 } as never)).rejects.toThrow('did you mean "timeout"?');
    expect(() => managerOf().patterns({ evictions: 1 } as never)).toThrow('did you mean "evictionRate"?');
    expect(() => managerOf().patterns({ evictionRate: Number.NaN })).toThrow(ConfigError);
  });
});
