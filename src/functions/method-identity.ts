// The name of a decorated method. A method runs in its own class and in every subclass, and may return something else in
// each (`this.table`), so its keys contain the class of the object it is called on.
import { ConfigError } from "../core/errors.ts";
import { type Identity, identity } from "./call-plan.ts";
import { requireName } from "./function-name.ts";

/** Whether a property holds a wrapper of the method in question. */
type IsOurs = (found: unknown) => boolean;

export function methodIdentities(
  method: object,
  givenName: string | undefined,
  context: ClassMethodDecoratorContext,
  isOurs: IsOurs,
): (self: unknown) => Identity {
  const methodName = typeof context.name === "symbol" ? `[${context.name.description ?? ""}]` : context.name;
  const byClass = new WeakMap<object, Identity>();

  return (self) => {
    const owner = classOf(self, context.static);
    if (owner === undefined) {
      throw new ConfigError(
        "NAME_REQUIRED",
        `The cached method ${methodName}() was called without its object, so its class and the name of its keys are unknown.`,
        { hint: "Call it on its object; with its controls: `object.method.refresh.call(object, ...)`." },
      );
    }
    let found = byClass.get(owner);
    if (found === undefined) {
      const name = givenName ?? `${classPath(owner, context, isOurs)}.${methodName}`;
      found = identity(name, { fn: method, class: owner });
      byClass.set(owner, found);
    }
    return found;
  };
}

type Class = { readonly name: string; readonly prototype: object };

function classOf(self: unknown, isStatic: boolean): Class | undefined {
  const found: unknown = isStatic ? self : (self as object | null | undefined)?.constructor;
  return typeof found === "function" ? (found as unknown as Class) : undefined;
}

/** `Class`; or `Class>Parent` when the class overrides the parent's method and calls it through `super`. */
function classPath(owner: Class, context: ClassMethodDecoratorContext, isOurs: IsOurs): string {
  const name = requireName(owner.name, `The class of the cached method ${String(context.name)}()`);
  let isOverridden = false;
  let holder: object | null = context.static ? owner : owner.prototype;
  for (; holder !== null; holder = Object.getPrototypeOf(holder)) {
    const property = Object.getOwnPropertyDescriptor(holder, context.name);
    if (property === undefined) continue;
    if (isOurs(property.value ?? property.get)) {
      return isOverridden ? `${name}>${classOf(holder, context.static)?.name}` : name;
    }
    isOverridden = true;
  }
  return name; // private, or wrapped by another decorator
}
