// XCacheModule: makes a cache injectable in a Nest application and closes it on shutdown.
import type {
  DynamicModule,
  InjectionToken,
  ModuleMetadata,
  OnApplicationShutdown,
  Provider,
} from "@nestjs/common";
import type { CacheConfig } from "../../config/types.ts";
import { requireOptions } from "../../core/arguments.ts";
import { requiredPackage } from "../../core/peer-package.ts";
import { XCache } from "../../xcache.ts";
import { resolveCacheSource } from "../cache-source.ts";

// This entry point is useless without Nest and RxJS, so they are loaded with it.
const FEATURE = "xcache/ecosystem/nest";

export const nest = requiredPackage("@nestjs/common", FEATURE) as typeof import("@nestjs/common");
export const rx = requiredPackage("rxjs", FEATURE) as typeof import("rxjs");

interface SharedModuleOptions {
  /** Distinguishes several caches: inject this one with `@InjectXCache(name)`. Default: none, inject `XCache`. */
  readonly name?: string;
  /** Whether the cache is injectable without importing the module again. Default: true. */
  readonly isGlobal?: boolean;
  /** Whether to leave the cache open on shutdown. By default even a cache that you passed in is closed. Default: false. */
  readonly keepOpen?: boolean;
}

export interface XCacheModuleOptions extends SharedModuleOptions {
  /** A cache, or a configuration for one. Default: that of `new XCache()`. */
  readonly cache?: XCache | CacheConfig;
}

export interface XCacheModuleAsyncOptions<Injected extends unknown[] = never[]>
  extends SharedModuleOptions,
    Pick<ModuleMetadata, "imports"> {
  /** Tokens of the factory's arguments. */
  readonly inject?: { [At in keyof Injected]: InjectionToken<Injected[At]> };
  readonly useFactory: (...injected: Injected) => XCache | CacheConfig | Promise<XCache | CacheConfig>;
}

const SHARED_OPTIONS = ["name", "isGlobal", "keepOpen"];

/** The injection token of a cache. */
export function xcacheToken(name?: string): InjectionToken<XCache> {
  return name === undefined ? XCache : `xcache:${name}`;
}

/** Injects the cache with this name, or the unnamed one. */
export function InjectXCache(name?: string): PropertyDecorator & ParameterDecorator {
  return nest.Inject(xcacheToken(name));
}

/** `onApplicationShutdown` is the last hook: no request is in flight any more. */
class CacheCloser implements OnApplicationShutdown {
  readonly #cache: XCache | undefined;

  constructor(cache: XCache | undefined) {
    this.#cache = cache;
  }

  /** An unreachable store must not keep other modules from closing. */
  async onApplicationShutdown(): Promise<void> {
    await this.#cache?.disconnect().catch(() => {});
  }
}

// biome-ignore lint/complexity/noStaticOnlyClass: Nest identifies modules by their class.
export class XCacheModule {
  /** Throws ConfigError for invalid options. With an invalid cache configuration the application does not start. */
  static forRoot(options: XCacheModuleOptions = {}): DynamicModule {
    requireOptions(options, ["cache", ...SHARED_OPTIONS]);
    const { cache = {}, ...shared } = options;
    const token = xcacheToken(shared.name);
    return moduleOf(shared, { provide: token, useFactory: () => resolveCacheSource(cache).cache });
  }

  static forRootAsync<Injected extends unknown[]>(
    options: XCacheModuleAsyncOptions<Injected>,
  ): DynamicModule {
    requireOptions(options, ["imports", "inject", "useFactory", ...SHARED_OPTIONS]);
    const { imports = [], inject, useFactory } = options;
    const provider: Provider<XCache> = {
      provide: xcacheToken(options.name),
      inject: [...(inject ?? [])],
      useFactory: async (...injected: Injected) => resolveCacheSource(await useFactory(...injected)).cache,
    };
    return { ...moduleOf(options, provider), imports };
  }
}

nest.Module({})(XCacheModule);

function moduleOf(
  { name, isGlobal = true, keepOpen = false }: SharedModuleOptions,
  cache: Provider,
): DynamicModule {
  const token = xcacheToken(name);
  const closer: Provider = {
    provide: `${String(name)}:xcache-closing`,
    inject: [token],
    useFactory: (opened: XCache) => new CacheCloser(keepOpen ? undefined : opened),
  };
  return { module: XCacheModule, global: isGlobal, providers: [cache, closer], exports: [token] };
}
