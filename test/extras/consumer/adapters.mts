// A consumer of every adapter, beside the library it is for. Read as an ES module and, under another name, as a CommonJS one.
import { ApolloServer } from "@apollo/server";
import { Module } from "@nestjs/common";
import { PrismaPg } from "@prisma/adapter-pg";
import { createCache } from "cache-manager";
import { drizzle } from "drizzle-orm/node-postgres";
import { pgTable, text } from "drizzle-orm/pg-core";
import express from "express";
import Fastify from "fastify";
import { Hono } from "hono";
import { Keyv } from "keyv";
import knex from "knex";
import Koa from "koa";
import { Kysely, PostgresDialect } from "kysely";
import type { CacheHandler as UseCacheHandler } from "next/dist/server/lib/cache-handlers/types.js";
import type { CacheHandler, CacheHandlerContext } from "next/dist/server/lib/incremental-cache/index.js";
import { Pool } from "pg";
import { DataSource } from "typeorm";
import { createStorage } from "unstorage";
import { cachedDependency, XCache } from "xcache";
import { drizzleCache, drizzleSessions } from "xcache/db/drizzle";
import { postgresFeed, rowsTag, rowTag } from "xcache/db/feed";
import { knexSessions } from "xcache/db/knex";
import { cachedDialect, kyselySessions } from "xcache/db/kysely";
import { pgSessions } from "xcache/db/pg";
import { cachedAdapter, prismaCache, prismaSessions } from "xcache/db/prisma";
import { typeormCache, typeormSessions } from "xcache/db/typeorm";
import { apolloCache } from "xcache/ecosystem/apollo";
import { cacheManagerStore } from "xcache/ecosystem/cache-manager";
import { XCacheKeyvStore } from "xcache/ecosystem/keyv";
import { CacheMethod, CacheResponse, XCacheModule } from "xcache/ecosystem/nest";
import { nextCacheHandler, nextUseCacheHandler } from "xcache/ecosystem/next";
import { unstorageDriver } from "xcache/ecosystem/unstorage";
import { httpCache as expressCache } from "xcache/web/express";
import { httpCache as fastifyCache } from "xcache/web/fastify";
import { httpCache as honoCache } from "xcache/web/hono";
import { httpCache as koaCache } from "xcache/web/koa";

const cache = new XCache({ kvUrl: "memory://" });
const pool = new Pool();
const watched = { cache, tableName: "users", ttl: 60 };

// Web frameworks.
express().use(expressCache({ cache, skip: (request) => request.path === "/health" }));
// @ts-expect-error an option of that name there is not
express().use(expressCache({ cache, tll: 60 }));
Fastify().register(fastifyCache({ cache, skip: (request) => request.routeOptions.url === "/health" }));
new Hono().use(honoCache({ cache, skip: (context) => context.req.path === "/health" }));
new Koa().use(koaCache<Koa.Context>({ cache, skip: (context) => context.path === "/health" }));

// Databases.
const queries = drizzleCache({ cache, ttl: 60 });
const rows = drizzle({ client: queries.client(pool), cache: queries });
const users = pgTable("users", { name: text() });
const changed = queries.invalidate({ tables: [users, "orders"], tags: "reports" });
// @ts-expect-error a table is one of drizzle's, or a name
void queries.invalidate({ tables: pool });
const tables = new Kysely<{ users: { id: number } }>({
  dialect: cachedDialect(new PostgresDialect({ pool }), watched),
});
// @ts-expect-error a pool is no dialect
cachedDialect(pool, watched);
const source = new DataSource({ type: "postgres", cache: { provider: typeormCache({ cache }) } });
const adapter = cachedAdapter(new PrismaPg(pool), watched);
const extend = prismaCache(watched);
const feed = postgresFeed({ connection: {}, cache, tables: "users", rows: true });
void cachedDependency(() => pool, { ...watched, feed });
void cache.invalidateTags([rowTag("users", 42), rowsTag("users")]);
// @ts-expect-error a slot is temporary, or durable under a name
postgresFeed({ connection: {}, cache, tables: "users", slot: "durable" });
const sessions = [
  cachedDependency(() => pool, { ...watched, adapter: pgSessions }),
  cachedDependency(() => knex({ client: "pg" }), { ...watched, adapter: knexSessions }),
  cachedDependency(() => tables, { ...watched, adapter: kyselySessions }),
  cachedDependency(() => rows, { ...watched, adapter: drizzleSessions }),
  cachedDependency(() => source, { ...watched, adapter: typeormSessions }),
  cachedDependency(() => ({ adapter }), { ...watched, adapter: prismaSessions }),
];

// The ecosystem.
new ApolloServer({ typeDefs: "type Query { hello: String }", cache: apolloCache(cache) });
const sessionsByUser = new Keyv({ store: new XCacheKeyvStore(cache), namespace: "users" });
const manager = createCache({ stores: [cacheManagerStore(cache)], ttl: 60_000 });
const storage = createStorage({ driver: unstorageDriver(cache, { ttl: 60 }) });
class Application {}
Module({ imports: [XCacheModule.forRoot({ cache })] })(Application);
const pages: new (context: CacheHandlerContext) => CacheHandler = nextCacheHandler(cache);
const remembered: UseCacheHandler = nextUseCacheHandler(cache);

export {
  CacheMethod,
  CacheResponse,
  changed,
  extend,
  manager,
  pages,
  remembered,
  sessions,
  sessionsByUser,
  storage,
};
