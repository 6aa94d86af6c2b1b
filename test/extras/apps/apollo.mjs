import { ApolloServer } from "@apollo/server";
import { XCache } from "xcache";
import { apolloCache } from "xcache/ecosystem/apollo";
import { check, works } from "./check.mjs";

const cache = apolloCache(new XCache({ kvUrl: "memory://" }));
const server = new ApolloServer({ typeDefs: "type Query { hello: String }", cache });
const answer = await server.executeOperation({ query: "{ hello }" });
check(answer.body.kind, "single", "an operation");
await cache.set("key", "value", { ttl: 60 });
check(await cache.get("key"), "value", "a value");
works("@apollo/server");
