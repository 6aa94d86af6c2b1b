import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as libsql from "@prisma/adapter-libsql";
import { cachedDependency, XCache } from "xcache";
import { prismaCache } from "xcache/db/prisma";
import { checkSession, versionOf, works } from "./check.mjs";
import { path } from "./sqlite.mjs";

const isOld = versionOf("@prisma/client").startsWith("6.");
writeFileSync(
  "schema.prisma",
  `generator client {
  provider = "prisma-client-js"
  output = "./generated"
  ${isOld ? 'engineType = "client"' : ""}
}
datasource db {
  provider = "sqlite"
  ${isOld ? 'url = "file:unused"' : ""}
}
model User {
  id Int @id
  name String
  @@map("users")
}`,
);
const require = createRequire(import.meta.url);
// Nothing of prisma's engines is run, so that none has to be downloaded.
execFileSync(
  process.execPath,
  [require.resolve("prisma/build/index.js"), "generate", "--schema", "schema.prisma"],
  {
    env: { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, PRISMA_HIDE_UPDATE_MESSAGE: "1" },
    stdio: ["ignore", "ignore", "inherit"],
  },
);
const { PrismaClient } = require("./generated/index.js");
// Prisma has renamed the class.
const Adapter = libsql.PrismaLibSql ?? libsql.PrismaLibSQL;
const client = new PrismaClient({ adapter: new Adapter({ url: `file:${path}` }) });
const cache = new XCache({ kvUrl: "memory://" });
const rows = (session) => ({
  read: async () => (await session.user.findUniqueOrThrow({ where: { id: 1 } })).name,
  rename: (name) =>
    session.$transaction((transaction) => transaction.user.update({ where: { id: 1 }, data: { name } })),
});
await checkSession(cache, rows(await cachedDependency(() => client, { cache, tableName: "users" })()));
const extended = rows(client.$extends(prismaCache({ cache, tableName: "users" })));
await extended.rename("Ada");
await checkSession(cache, extended);
works("@prisma/client", "@prisma/adapter-libsql");
