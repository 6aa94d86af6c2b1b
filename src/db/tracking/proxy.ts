// An object that is another one in every respect, except for some of its members.

type Method = (this: unknown, ...args: unknown[]) => unknown;

/**
 * Shows `target` with `members` in place of its own. Its methods run on the target itself; one that returns the target
 * returns the mirror instead. What is assigned to the mirror is assigned to the target, or in place of a member.
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
      // What is the object's own is data, also when it is a class or a callback; methods come from its class.
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
