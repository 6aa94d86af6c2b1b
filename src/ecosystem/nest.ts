// The cache as a module of Nest 11: injectable, closed with the application, and behind decorators.
export { CacheMethod, type CacheMethodOptions } from "./nest/method.ts";
export {
  InjectXCache,
  XCacheModule,
  type XCacheModuleAsyncOptions,
  type XCacheModuleOptions,
  xcacheToken,
} from "./nest/module.ts";
export { type CachedRequest, CacheResponse, type CacheResponseOptions } from "./nest/response.ts";
