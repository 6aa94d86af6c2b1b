// Why a connection to Redis or Valkey failed, and what to do about it.
import { ConnectionError, type XCacheError } from "../../../core/errors.ts";
import * as wire from "../../wire/connection-error.ts";
import { type Endpoint, nameOf } from "../../wire/socket.ts";
import { type Reply, ReplyError } from "../resp/reply.ts";
import { type ExpectedReply, kindOf } from "./expected-reply.ts";

const LOGIN = "Check the user and password, in kv_url or as username and password.";
const AUTHORITY = "Name the authority that signed the server's certificate with tls_ca_file.";
const NEEDS_TLS = "If the server speaks TLS at this port, use rediss://; otherwise check the address.";

/** By the code of a system error, of TLS or of the server. */
const HINTS: Readonly<Record<string, string>> = {
  WRONGPASS: LOGIN,
  NOAUTH: LOGIN,
  NOPERM: "Allow the command named in the message to the user in kv_url.",
  ERR_SSL_WRONG_VERSION_NUMBER: wire.NEEDS_NO_TLS,
  ERR_TLS_CERT_ALTNAME_INVALID:
    "Use a host name that the server's certificate carries, or give it as tls_server_name.",
  SELF_SIGNED_CERT_IN_CHAIN: AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: AUTHORITY,
};

const REFUSALS: readonly (readonly [words: RegExp, hint: string])[] = [
  [/DB index/i, "Check the database number in kv_url; a server has 16 unless configured otherwise."],
];

/** It could not be opened or was lost; `isGreeted`: the server has answered at least once. */
export function lost(endpoint: Endpoint, cause: Error | undefined, isGreeted: boolean): ConnectionError {
  const code = (cause as NodeJS.ErrnoException | undefined)?.code ?? "";
  const isCutShort = !isGreeted && (cause === undefined || code === "ECONNRESET" || code === "EPIPE");
  if (!isCutShort) return wire.lost(nameOf(endpoint), cause, HINTS[code]);
  // Redis ends a plain connection to its TLS port without a word.
  return new ConnectionError(
    `${nameOf(endpoint)} ended the connection before it answered, as a server does that expects TLS`,
    { hint: NEEDS_TLS, ...(cause === undefined ? {} : { cause }) },
  );
}

/** `first`: the first byte that arrived. */
export function notResp(endpoint: Endpoint, cause: unknown, first: number | undefined): ConnectionError {
  if (first === wire.TLS_ALERT) {
    return new ConnectionError(`${nameOf(endpoint)} speaks TLS, and the connection was plain`, {
      cause,
      code: "PROTOCOL_VIOLATED",
      hint: "Use rediss:// for this port.",
    });
  }
  return new ConnectionError(`${nameOf(endpoint)} does not speak the Redis protocol`, {
    cause,
    code: "PROTOCOL_VIOLATED",
    hint: NEEDS_TLS,
  });
}

/** A reply that its command cannot have. */
export function unexpectedReply(
  endpoint: Endpoint,
  command: string,
  { what }: ExpectedReply,
  reply: Reply,
): ConnectionError {
  return new ConnectionError(
    `${nameOf(endpoint)} answered ${command} with ${kindOf(reply)}, expected ${what}`,
    { code: "PROTOCOL_VIOLATED" },
  );
}

/** `password`: what was sent to log in, which the server's message may repeat. */
export function refused(endpoint: Endpoint, thrown: unknown, password?: string): XCacheError {
  if (!(thrown instanceof ReplyError)) return thrown as XCacheError;
  const hint = HINTS[thrown.code] ?? REFUSALS.find(([words]) => words.test(thrown.message))?.[1];
  const cause = withoutPassword(thrown, password);
  const isUnnamed = thrown.code === "NOAUTH" && !password;
  const problem = isUnnamed
    ? "requires a password, and none was given (NOAUTH)"
    : `refused the connection: ${cause.message}`;
  return new ConnectionError(`${nameOf(endpoint)} ${problem}`, {
    ...wire.withHint(hint),
    cause,
  });
}

/** Keeps the first word, the error code that callers go by: a password may be an ordinary word. */
export function withoutPassword(error: ReplyError, password: string | undefined): ReplyError {
  if (!password || !error.message.includes(password)) return error;
  const [code = ""] = /^[A-Z]+(?= |$)/.exec(error.message) ?? [];
  return new ReplyError(code + error.message.slice(code.length).replaceAll(password, "***"));
}

/** It cannot be used yet; `cause`: what the server said. */
export const notReady = (name: string, cause: Error): ConnectionError =>
  new ConnectionError(`${name} is not ready: ${cause.message}`, { cause });

const fromReplicas = new WeakSet<Error>();

export function notMaster(name: string): ConnectionError {
  const error = new ConnectionError(`${name} is a replica and takes no writes`, {
    hint: "Give the address of the master, of the sentinels or of the cluster.",
  });
  fromReplicas.add(error);
  return error;
}

/** Whether a server was reached and turned out to be a replica: it knows its master. */
export const isNotMaster = (error: Error): boolean => fromReplicas.has(error);

export const notInUse = (name: string): ConnectionError =>
  new ConnectionError(`${name} is not the server in use`, {
    hint: "Call again when the failover is complete.",
  });

export const hasOtherData = (name: string, when = ""): ConnectionError =>
  new ConnectionError(`${name} has taken over another server's data${when}`);

export function inCluster(endpoint: Endpoint): ConnectionError {
  const name = nameOf(endpoint);
  return new ConnectionError(`${name} is a node of a cluster`, {
    hint:
      "path" in endpoint
        ? "Use redis+cluster:// with the host and port of one of its nodes."
        : `Use redis+cluster://${name}, or rediss+cluster:// for TLS.`,
  });
}
