// `cached` as a standard method decorator.
import type { UncheckedOptions } from "./cached-options.ts";
import { CallPlan } from "./call-plan.ts";
import { methodIdentities } from "./method-identity.ts";
import { type AnyMethod, markWrapper, planOf, wrap } from "./wrapped-function.ts";

export function decorateMethod(
  method: AnyMethod,
  options: UncheckedOptions,
  context: ClassMethodDecoratorContext,
): AnyMethod {
  const isOurs = (found: unknown): boolean => planOf(found) === plan;
  const plan: CallPlan = new CallPlan(
    method,
    options,
    methodIdentities(method, options.name, context, isOurs),
  );
  const unbound = wrap(plan, undefined);
  context.addInitializer(function () {
    if (!context.static) plan.prepare(this);
    if (!context.private) bindControls(this as Record<PropertyKey, unknown>, context, plan, unbound);
  });
  return unbound;
}

/**
 * Gives each object its own wrapper, so that `users.find.refresh(1)` knows its `this`; not where a subclass overrides
 * the method or another decorator wraps it. Static methods are inherited by classes that do not exist yet, so a getter
 * binds those.
 */
function bindControls(
  self: Record<PropertyKey, unknown>,
  { name, static: isStatic }: ClassMethodDecoratorContext,
  plan: CallPlan,
  unbound: AnyMethod,
): void {
  if (self[name] !== unbound) return;
  const replace = (object: object, value: unknown): void => {
    Object.defineProperty(object, name, { value, writable: true, configurable: true });
  };
  if (!isStatic) {
    replace(self, wrap(plan, self));
    return;
  }
  const byClass = new WeakMap<object, AnyMethod>();
  function get(this: object): AnyMethod {
    const bound = byClass.get(this) ?? wrap(plan, this);
    byClass.set(this, bound);
    return bound;
  }
  markWrapper(get, plan);
  Object.defineProperty(self, name, {
    get,
    set(this: object, value: unknown) {
      replace(this, value);
    },
    configurable: true,
  });
}
