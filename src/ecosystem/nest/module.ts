// XCacheModule: makes a cache injectable in a Nest application, and closes it with the application.
import type {
  DynamicModule,
  InjectionToken,
  ModuleMetadata,
  OnApplicationShutdown,
  Provider,
} from "@nestjs/common";
import type { CacheConfig } from "../../config/types.ts";
import { requireOptions } from "../../core/arguments.ts";
import { requiredPackage } from "../../metrics/peer-package.ts";
import { XCache } from "../../xcache.ts";
import { holdCache } from "../cache-source.ts";

// This entry point is useless without Nest and RxJS, so they are loaded with it.
const FEATURE = "xcache/ecosystem/nest";

export const nest = requiredPackage("@nestjs/common", FEATURE) as typeof import("@nestjs/common");
export const rx = requiredPackage("rxjs", FEATURE) as typeof import("rxjs");

interface ModuleTerms {
  /** Tells several caches apart: inject this one with `@InjectXCache(name)`. Default: none, inject `XCache`. */
  readonly name?: string;
  /** Injectable everywhere without importing the module again. Default: true. */
  readonly isGlobal?: boolean;
  /** Leave the cache open when the application shuts down, also one that was given. Default: false. */
  readonly keepOpen?: boolean;
}

export interface XCacheModuleOptions extends ModuleTerms {
  /** A cache, or the configuration of one. Default: as `new XCache()`. */
  readonly cache?: XCache | CacheConfig;
}

export interface XCacheModuleAsyncOptions<Injected extends unknown[] = never[]>
  extends ModuleTerms,
    Pick<ModuleMetadata, "imports"> {
  /** What the factory is called with. */
  readonly inject?: { [At in keyof Injected]: InjectionToken<Injected[At]> };
  readonly useFactory: (...injected: Injected) => XCache | CacheConfig | Promise<XCache | CacheConfig>;
}

const TERMS = ["name", "isGlobal", "keepOpen"];

/** What a cache is provided under. */
export function xcacheToken(name?: string): InjectionToken<XCache> {
  return name === undefined ? XCache : `xcache:${name}`;
}

/** Injects the cache of that name, or the one without. */
export function InjectXCache(name?: string): PropertyDecorator & ParameterDecorator {
  return nest.Inject(xcacheToken(name));
}

/** `onApplicationShutdown` comes last, when no request is under way any more. */
class Closing implements OnApplicationShutdown {
  readonly #cache: XCache | undefined;

  constructor(cache: XCache | undefined) {
    this.#cache = cache;
  }

  /** A store that does not answer must not keep other modules from closing. */
  async onApplicationShutdown(): Promise<void> {
    await this.#cache?.disconnect().catch(() => {});
  }
}

// biome-ignore lint/complexity/noStaticOnlyClass: Nest knows modules by their class.
export class XCacheModule {
  /** Throws ConfigError for options that cannot be; with such a configuration the application does not start. */
  static forRoot(options: XCacheModuleOptions = {}): DynamicModule {
    requireOptions(options, ["cache", ...TERMS]);
    const { cache = {}, ...terms } = options;
    const token = xcacheToken(terms.name);
    return moduleOf(terms, { provide: token, useFactory: () => holdCache(cache).cache });
  }

  static forRootAsync<Injected extends unknown[]>(
    options: XCacheModuleAsyncOptions<Injected>,
  ): DynamicModule {
    requireOptions(options, ["imports", "inject", "useFactory", ...TERMS]);
    const { imports = [], inject, useFactory } = options;
    const provider: Provider<XCache> = {
      provide: xcacheToken(options.name),
      inject: [...(inject ?? [])],
      useFactory: async (...injected: Injected) => holdCache(await useFactory(...injected)).cache,
    };
    return { ...moduleOf(options, provider), imports };
  }
}

nest.Module({})(XCacheModule);

function moduleOf({ name, isGlobal = true, keepOpen = false }: ModuleTerms, cache: Provider): DynamicModule {
  const token = xcacheToken(name);
  const closing: Provider = {
    provide: `${String(name)}:xcache-closing`,
    inject: [token],
    useFactory: (opened: XCache) => new Closing(keepOpen ? undefined : opened),
  };
  return { module: XCacheModule, global: isGlobal, providers: [cache, closing], exports: [token] };
}
