// node-postgres: wraps a Pool, a Client or a pooled client for cachedDependency.
import { ConfigError } from "../core/errors.ts";
import { watchClient, wrapClient } from "./pg/client.ts";
import type { PgClient } from "./pg/library.ts";
import { hasMethod, wrongArgument } from "./tracking/argument-checks.ts";
import { proxyOf } from "./tracking/proxy.ts";
import { trackerOf, type WatchOptions } from "./tracking/watch-options.ts";

export type { PgClient, PgPool } from "./pg/library.ts";
export { pgSessions } from "./pg/sessions.ts";
export type { WatchOptions } from "./tracking/watch-options.ts";

/**
 * The package itself, for libraries that take it, such as Sequelize as its `dialectModule`: reads of its clients are cached, and
 * their commits invalidate. Throws ConfigError ARGUMENT_INVALID.
 */
export function cachedModule<Library extends object>(library: Library, options: WatchOptions): Library {
  const tracker = trackerOf("cachedModule", options);
  if (!hasMethod(library, "Client")) throw wrongArgument("cachedModule", "the package pg", library);
  const { Client: given } = library as { readonly Client: new (...args: unknown[]) => PgClient };
  const Client = new Proxy(given, {
    construct: (target, args) => wrapClient(watchClient(new target(...args), tracker)),
  });
  return proxyOf(library, {
    Client,
    get native(): never {
      throw new ConfigError(
        "ARGUMENT_INVALID",
        "cachedModule(): connections of pg-native cannot be watched. Leave out `native`.",
      );
    },
  });
}
