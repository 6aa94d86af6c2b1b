// Webhook signatures according to Standard Webhooks 1.0, section "Signature scheme".
import { nodeCrypto } from "../core/lazy-builtin.ts";
import { refusal, requireStrings } from "./checks.ts";

const PREFIX = "whsec_";
const FEWEST_BYTES = 24;
const MOST_BYTES = 64;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The keys; several during key rotation. Throws ConfigError, which never shows a secret. */
export function requireSecrets(value: unknown): readonly Buffer[] {
  return requireStrings("webhookSecret", value).map((text) => {
    const encoded = text.startsWith(PREFIX) ? text.slice(PREFIX.length) : "";
    const key = Buffer.from(encoded, "base64");
    if (BASE64.test(encoded) && key.length >= FEWEST_BYTES && key.length <= MOST_BYTES) return key;
    throw refusal(
      "webhookSecret",
      `${PREFIX} followed by ${FEWEST_BYTES} to ${MOST_BYTES} bytes in base64`,
      "something else (not shown)",
      `Make one: printf '${PREFIX}%s' "$(openssl rand -base64 ${FEWEST_BYTES})"`,
    );
  });
}

export interface Signed {
  readonly id: string;
  /** Seconds since the epoch, of this attempt. */
  readonly timestamp: number;
  readonly body: string;
}

/** The header value: one signature per key. */
export function signatures(keys: readonly Buffer[], { id, timestamp, body }: Signed): string {
  const sign = (key: Buffer): string =>
    `v1,${nodeCrypto().createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  return keys.map(sign).join(" ");
}
