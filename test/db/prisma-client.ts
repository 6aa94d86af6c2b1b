// A client of prisma, made by its generator for the tables of the tests.
import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { UserSession, UserTransaction } from "./library-rules.ts";

const SCHEMA = (output: string, provider: string) => `
generator client {
  provider = "prisma-client-js"
  output   = ${JSON.stringify(output)}
}
datasource db {
  provider = ${JSON.stringify(provider)}
}
model User {
  id     Int     @id
  name   String
  orders Order[]
  @@map("users")
}
model Order {
  id     Int   @id
  userId Int?  @map("user_id")
  user   User? @relation(fields: [userId], references: [id])
  @@map("orders")
}
`;

export interface User {
  readonly id: number;
  readonly name: string;
}

interface UserDelegate {
  findUniqueOrThrow(query: object): Promise<User & { readonly orders: readonly object[] }>;
  update(query: object): Promise<User>;
  create(query: object): Promise<User>;
}

export interface TransactionClient {
  readonly user: UserDelegate;
  $transaction<T>(
    work: (transaction: TransactionClient) => Promise<T>,
    options?: { readonly isolationLevel?: string },
  ): Promise<T>;
  $executeRaw(text: TemplateStringsArray, ...values: unknown[]): Promise<number>;
  $queryRaw(text: TemplateStringsArray, ...values: unknown[]): Promise<unknown>;
}

/** What of the generated client is used. */
export interface Client extends TransactionClient {
  $extends<T>(extension: (client: Client) => T): T;
  $disconnect(): Promise<void>;
  $on(event: string, listener: (event: object) => void): void;
}

export type ClientClass = new (options: object) => Client;

/** Inside the package, so that what the client imports resolves from there. */
const root = join(import.meta.dirname, "..", "..", ".cache", "prisma");

/** The generator takes seconds of processor time: what it has made is kept, for its version and the schema. */
export async function generateClient(
  provider: "postgresql" | "sqlite" | "mysql" = "postgresql",
): Promise<ClientClass> {
  const { version } = createRequire(import.meta.url)("prisma/package.json") as { readonly version: string };
  const digest = hash("sha256", SCHEMA("client", provider)).slice(0, 16);
  const folder = join(root, `${provider}-${version}-${digest}`);
  if (!existsSync(folder)) await generateInto(folder, provider);
  const made = (await import(pathToFileURL(join(folder, "index.js")).href)) as {
    readonly PrismaClient: ClientClass;
  };
  return made.PrismaClient;
}

/** Nothing of prisma's engines is run for this, so that none has to be there. */
async function generateInto(folder: string, provider: string): Promise<void> {
  mkdirSync(root, { recursive: true });
  const place = mkdtempSync(join(root, "new-"));
  const schema = join(place, "schema.prisma");
  writeFileSync(schema, SCHEMA(join(place, "client"), provider));
  const cli = createRequire(import.meta.url).resolve("prisma/build/index.js");
  await promisify(execFile)(process.execPath, [cli, "generate", "--schema", schema], {
    cwd: place,
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: "1" },
  });
  try {
    renameSync(join(place, "client"), folder);
  } catch (error) {
    // Another worker was faster.
    if (!existsSync(folder)) throw error;
  }
  rmSync(place, { recursive: true, force: true });
}

export function prismaRows(session: Client): UserSession {
  const row = (executor: TransactionClient): UserTransaction => ({
    read: async () => (await executor.user.findUniqueOrThrow({ where: { id: 1 } })).name,
    write: (name) => executor.user.update({ where: { id: 1 }, data: { name } }),
    writeRaw: (name) => executor.$executeRaw`update users set name = ${name} where id = 1`,
    insertAgain: () => executor.user.create({ data: { id: 1, name: "again" } }),
    nested: (work) => executor.$transaction((inner) => work(row(inner))),
  });
  return {
    ...row(session),
    transaction: (work) => session.$transaction((transaction) => work(row(transaction))),
    snapshot: (work) =>
      session.$transaction((transaction) => work(row(transaction)), { isolationLevel: "RepeatableRead" }),
  };
}
