import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { requireSecrets, signatures } from "../../src/alerts/signature.ts";
import { ConfigError } from "../../src/core/errors.ts";

const secretOf = (key: Buffer): string => `whsec_${key.toString("base64")}`;
const KEY = Buffer.from("0123456789abcdef01234567");
const SIGNED = { id: "msg_1", timestamp: 1_767_225_600, body: '{"a":"ü"}' };

describe("signatures", () => {
  it("match the example that the Standard Webhooks libraries are tested with", () => {
    const keys = requireSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    const signed = {
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      timestamp: 1_614_265_330,
      body: '{"test": 2432232314}',
    };
    expect(signatures(keys, signed)).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  it("cover id, timestamp and body", () => {
    const expected = createHmac("sha256", KEY).update('msg_1.1767225600.{"a":"ü"}', "utf8").digest("base64");
    expect(signatures([KEY], SIGNED)).toBe(`v1,${expected}`);
  });

  it("contain one per key, so that keys can be rotated without a gap", () => {
    const other = Buffer.alloc(32, 7);
    const both = signatures(requireSecrets([secretOf(KEY), secretOf(other)]), SIGNED);
    expect(both).toBe(`${signatures([KEY], SIGNED)} ${signatures([other], SIGNED)}`);
  });
});

describe("a secret", () => {
  it.each([24, 64])("may have %d bytes", (bytes) => {
    expect(requireSecrets(secretOf(Buffer.alloc(bytes, 1)))).toEqual([Buffer.alloc(bytes, 1)]);
  });

  it.each([
    ["too few bytes", secretOf(Buffer.alloc(23, 1))],
    ["too many bytes", secretOf(Buffer.alloc(65, 1))],
    ["no prefix", Buffer.alloc(24, 1).toString("base64")],
    ["another prefix", `whsk_${Buffer.alloc(24, 1).toString("base64")}`],
    ["other characters", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2La*aSw"],
    ["nothing", ""],
  ])("with %s is rejected without being shown", (_, secret) => {
    let error: unknown;
    try {
      requireSecrets(secret);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      code: "CONFIG_INVALID",
      hint: expect.stringContaining("openssl rand -base64 24"),
    });
    if (secret !== "") expect(`${(error as Error).stack}`).not.toContain(secret.slice(6, 18));
  });

  it.each([[5], [[]], [[secretOf(KEY), undefined]]])("%o is rejected", (secret) => {
    expect(() => requireSecrets(secret)).toThrow(ConfigError);
  });
});
