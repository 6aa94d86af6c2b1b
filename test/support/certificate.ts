// Certificates for TLS tests: an authority made on the spot and a leaf it signed for localhost.
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { binaryOf } from "./machine.ts";
import { runFolder } from "./run-folder.ts";

const run = promisify(execFile);

export interface Certificates {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** The authority's certificate, as clients take it. */
  readonly ca: string;
}

const EC_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];

/** Valid for localhost and 127.0.0.1; gone with the run's folder. Each call makes another authority. */
export async function makeCertificates(): Promise<Certificates> {
  const openssl = binaryOf("openssl");
  const folder = mkdtempSync(join(runFolder(), "certificates-"));
  const file = (name: string) => join(folder, name);
  const caFile = file("ca.crt");
  const caKey = file("ca.key");
  const certFile = file("server.crt");
  const keyFile = file("server.key");
  await run(openssl, [
    "req",
    "-x509",
    ...EC_KEY,
    "-subj",
    "/CN=xcache test authority",
    "-keyout",
    caKey,
    "-out",
    caFile,
  ]);
  await run(openssl, [
    ...["req", "-x509", ...EC_KEY, "-subj", "/CN=localhost", "-keyout", keyFile, "-out", certFile],
    ...["-CA", caFile, "-CAkey", caKey],
    ...["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
    ...["-addext", "basicConstraints=critical,CA:FALSE"],
  ]);
  return { caFile, certFile, keyFile, ca: readFileSync(caFile, "utf8") };
}
