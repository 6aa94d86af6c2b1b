// Wraps library objects: a proxy that replaces some members, and one wrapper per session.
import type { SessionTracker } from "../../core/db-session.ts";

type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * A proxy of `target` with `members` overriding its own. Methods run on the target itself; one that returns the target
 * returns the proxy instead. Assignments go to the target, or replace a member.
 */
export function proxyOf<T extends object>(target: T, members: Record<string, unknown>): T {
  const methods = new WeakMap<Method, Method>();
  const bound = (method: Method): Method => {
    let found = methods.get(method);
    if (found === undefined) {
      found = function (this: unknown, ...args: unknown[]): unknown {
        const result = method.apply(this === proxy ? target : this, args);
        return result === target ? proxy : result;
      };
      methods.set(method, found);
    }
    return found;
  };
  const proxy: T = new Proxy(target, {
    get(_, property) {
      if (typeof property === "string" && Object.hasOwn(members, property)) return members[property];
      const value: unknown = Reflect.get(target, property, target);
      // An own property is data, even if it is a class or a callback; methods come from the class.
      const isMethod =
        typeof value === "function" && property !== "constructor" && !Object.hasOwn(target, property);
      return isMethod ? bound(value as Method) : value;
    },
    set(_, property, value) {
      if (typeof property === "string" && Object.hasOwn(members, property)) {
        members[property] = value;
        return true;
      }
      return Reflect.set(target, property, value, target);
    },
  });
  return proxy;
}

/** Wraps each session once per tracker and returns the same wrapper afterwards. */
export function perSession<Session extends object>(
  wrap: (session: Session, tracker: SessionTracker) => Session,
): (session: Session, tracker: SessionTracker) => Session {
  const trackers = new WeakMap<SessionTracker, WeakMap<Session, Session>>();
  return (session, tracker) => {
    const wrapped = trackers.get(tracker) ?? new WeakMap<Session, Session>();
    trackers.set(tracker, wrapped);
    const found = wrapped.get(session) ?? wrap(session, tracker);
    wrapped.set(session, found);
    return found;
  };
}
