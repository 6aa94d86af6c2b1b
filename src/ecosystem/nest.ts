// xcache for Nest 10 and later: an injectable cache that closes with the application, and caching decorators.
export { CacheMethod, type CacheMethodOptions } from "./nest/method.ts";
export {
  InjectXCache,
  XCacheModule,
  type XCacheModuleAsyncOptions,
  type XCacheModuleOptions,
  xcacheToken,
} from "./nest/module.ts";
export { type CachedRequest, CacheResponse, type CacheResponseOptions } from "./nest/response.ts";
