// TLS: which certificates are trusted, under which name, and what the errors say otherwise.
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { dirname, join } from "node:path";
import type { TLSSocket } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  ConfigError,
  ConnectionError,
  OperationTimeoutError,
  type XCacheError,
} from "../../../src/core/errors.ts";
import { type Certificates, makeCertificates } from "../../support/certificate.ts";
import { FakeServer } from "../../support/kv/fake-server.ts";
import { opened } from "../../support/kv/opened.ts";
import { binaryOf } from "../../support/machine.ts";
import { failure, works } from "../../support/opened.ts";
import { soon } from "../../support/pace.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";

let ours: Certificates;
let strangers: Certificates;
let server: RedisServer;

beforeAll(async () => {
  [ours, strangers] = await Promise.all([makeCertificates(), makeCertificates()]);
  server = await startRedis({ tls: ours });
});
afterAll(() => server.stop());

/** A TLS record: "this was no handshake". */
const ALERT = Buffer.from([21, 3, 1, 0, 2, 2, 70]);

/** A server that answers anything with these bytes. Its clients may reset the connection. */
async function serving(
  answer: (socket: Socket, received: Buffer) => unknown,
): Promise<AsyncDisposable & { readonly port: number }> {
  const listening = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.on("data", (received) => answer(socket, received));
  });
  listening.listen(0, "127.0.0.1");
  await once(listening, "listening");
  const { port } = listening.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void listening.close() };
}

/** The address of a server with TLS options. */
function address(
  options: Readonly<Record<string, string>>,
  { host = "localhost", port = server.port } = {},
): string {
  const query = Object.entries(options).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `rediss://${host}:${port}?${query.join("&")}`;
}

/** Whether a backend with this address works. */
async function reaches(url: string): Promise<boolean> {
  await using backend = opened(url);
  return await works(backend);
}

/** The error with which connecting fails, promptly. */
async function refusal(url: string): Promise<XCacheError> {
  await using backend = opened(url, { connectTimeoutMs: 500 });
  const began = performance.now();
  const error = await failure(backend.connect());
  expect(performance.now() - began).toBeLessThan(soon(1_000));
  return error;
}

/** A certificate that the authority signed for this name, as PEM files. */
async function signedFor(name: string, by: Certificates): Promise<{ certFile: string; keyFile: string }> {
  const folder = dirname(by.caFile);
  const certFile = join(folder, `${name}.crt`);
  const keyFile = join(folder, `${name}.key`);
  await promisify(execFile)(binaryOf("openssl"), [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"],
    ...["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`],
    ...["-addext", "basicConstraints=critical,CA:FALSE"],
    ...["-CA", by.caFile, "-CAkey", join(folder, "ca.key"), "-keyout", keyFile, "-out", certFile],
  ]);
  return { certFile, keyFile };
}

describe("a server whose certificate", () => {
  test("a named authority has signed is trusted, by its name and by its address", async () => {
    expect(await reaches(address({ tls_ca_file: ours.caFile }))).toBe(true);
    expect(await reaches(address({ tls_ca_file: ours.caFile }, { host: "127.0.0.1" }))).toBe(true);
    expect(await reaches(address({ tls_ca_file: ours.caFile }).replace("rediss", "valkeys"))).toBe(true);
  });

  test.each([
    ["the system does not know", () => ({})],
    ["another authority has signed", () => ({ tls_ca_file: strangers.caFile })],
  ])("%s is refused, with a hint", async (_, options) => {
    const error = await refusal(address(options()));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toMatch(/certificate/i);
    expect(error.hint).toContain("tls_ca_file");
  });

  test("carries another name is refused, with a hint", async () => {
    const error = await refusal(address({ tls_ca_file: ours.caFile, tls_server_name: "db.example" }));
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toContain("db.example");
    expect(error.hint).toContain("tls_server_name");
  });

  test("carries the name that tls_server_name gives is trusted", async () => {
    const { certFile, keyFile } = await signedFor("db.example", ours);
    const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
    await using fake = await FakeServer.start(undefined, { tls });
    const trusted = { tls_ca_file: ours.caFile, tls_server_name: "db.example" };
    await using backend = opened(address(trusted, fake));
    await backend.connect();
    const error = await refusal(address({ tls_ca_file: ours.caFile }, fake));
    expect(error.hint).toContain("tls_server_name");
  });

  test("no authority has signed is accepted only with tls_verify=false", async () => {
    expect(await reaches(address({ tls_verify: "false" }))).toBe(true);
    expect(await reaches(address({ tls_verify: "false", tls_server_name: "db.example" }))).toBe(true);
    expect(await refusal(address({ tls_verify: "true" }))).toBeInstanceOf(ConnectionError);
  });
});

describe("the name that is sent to the server", () => {
  test.each([
    ["its host", "localhost", {}, "localhost"],
    ["what tls_server_name says", "127.0.0.1", { tls_server_name: "db.example" }, "db.example"],
    ["none where the host is an address", "127.0.0.1", {}, false],
  ])("is %s", async (_, host, options, expected) => {
    const tls = { cert: readFileSync(ours.certFile), key: readFileSync(ours.keyFile) };
    await using fake = await FakeServer.start(undefined, { tls });
    await using backend = opened(address({ tls_verify: "false", ...options }, { host, port: fake.port }));
    await backend.connect();
    const socket = fake.clients[0]!.socket as TLSSocket & { readonly servername: string | false };
    expect(socket.servername).toBe(expected);
  });
});

describe("a server that asks for a certificate", () => {
  let demanding: RedisServer;
  beforeAll(async () => {
    demanding = await startRedis({ tls: ours });
    await demanding.cli("CONFIG", "SET", "tls-auth-clients", "yes");
  });
  afterAll(() => demanding.stop());

  test("receives the one in tls_cert_file", async () => {
    const { certFile, keyFile } = await signedFor("client", ours);
    const options = { tls_ca_file: ours.caFile, tls_cert_file: certFile, tls_key_file: keyFile };
    expect(await reaches(address(options, demanding))).toBe(true);
  });

  test.each([
    ["none", async () => ({})],
    [
      "one of an unknown authority",
      async () => ({ tls_cert_file: strangers.certFile, tls_key_file: strangers.keyFile }),
    ],
  ])("refuses a client with %s", async (_, client) => {
    const error = await refusal(address({ tls_ca_file: ours.caFile, ...(await client()) }, demanding));
    expect(error).toBeInstanceOf(ConnectionError);
  });
});

describe("a TLS file", () => {
  test("that cannot be read gives an error that names the option", async () => {
    for (const option of ["tls_ca_file", "tls_cert_file", "tls_key_file"]) {
      const error = await refusal(address({ [option]: "/nowhere/to/be.found" }));
      expect(error).toBeInstanceOf(ConfigError);
      expect(error.message).toContain(option);
      expect(error.message).toContain("/nowhere/to/be.found");
    }
  });

  test("that is not PEM gives a typed error", async () => {
    const file = join(dirname(ours.caFile), "no.pem");
    writeFileSync(file, "this is no certificate\n");
    for (const options of [{ tls_cert_file: file, tls_key_file: file }, { tls_ca_file: file }]) {
      expect(await refusal(address(options))).toBeInstanceOf(ConnectionError);
    }
  });
});

describe("a mix-up of TLS and plain connections", () => {
  test("is named in the error when the server does not speak TLS", async () => {
    await using plain = await startRedis();
    const error = await refusal(address({ tls_verify: "false" }, plain));
    expect(error.message).toContain("TLS");
    expect(error.hint).toContain("redis://");
  });

  test("is named at once when the server does not speak TLS, not after connect_timeout", async () => {
    await using plain = await startRedis();
    await using backend = opened(address({ tls_verify: "false" }, plain), { connectTimeoutMs: 3_600_000 });
    const error = await failure(backend.connect());
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toMatch(/does not speak TLS|wrong version number/);
    expect(error.hint).toContain("redis://");
  });

  test("is never reported for a TLS server that is merely slow", async () => {
    await using quiet = await serving((socket, [first]) => first === 22 || socket.end(ALERT));
    await using backend = opened(`rediss://127.0.0.1:${quiet.port}`, { connectTimeoutMs: 600 });
    expect(await failure(backend.connect())).toBeInstanceOf(OperationTimeoutError);
  });

  test("is named in the error when the server speaks only TLS", async () => {
    const error = await refusal(`redis://localhost:${server.port}`);
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toMatch(/ended the connection before it answered, .* TLS|speaks TLS/);
    expect(error.hint).toContain("rediss://");
  });

  test("is named in the error when the server answers with an alert", async () => {
    await using alerting = await serving((socket) => socket.end(ALERT));
    const error = await refusal(`redis://127.0.0.1:${alerting.port}`);
    expect(error.message).toBe(`127.0.0.1:${alerting.port} speaks TLS, and the connection was plain`);
    expect(error.hint).toContain("rediss://");
  });
});
