// `cachedDependency`, put together from the function's side and the databases'.
import { pgSessions } from "./db/pg.ts";
import { trackSessions } from "./db/session.ts";
import { type CachedDependency, dependencyWrapper } from "./functions/dependency.ts";

export const cachedDependency: CachedDependency = dependencyWrapper({
  adapters: [pgSessions],
  trackSessions,
});
