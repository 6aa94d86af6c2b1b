// Errors reduced to what structuredClone keeps: name, message, stack and cause. A custom name is kept too, on a plain Error.

export interface ErrorFacts {
  readonly name: string;
  readonly message: string | undefined;
  readonly stack: string | undefined;
  readonly hasCause: boolean;
  readonly cause: unknown;
}

const STANDARD_ERRORS: ReadonlyMap<string, new () => Error> = new Map(
  [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((type) => [
    type.name,
    type,
  ]),
);

export function errorFactsOf(error: Error): ErrorFacts {
  const { name, stack } = error;
  return {
    name: typeof name === "string" ? name : "Error",
    message: Object.hasOwn(error, "message") ? String(error.message) : undefined,
    stack: typeof stack === "string" ? stack : undefined,
    hasCause: Object.hasOwn(error, "cause"),
    cause: error.cause,
  };
}

export function errorFrom(facts: ErrorFacts): Error {
  const Standard = STANDARD_ERRORS.get(facts.name);
  const error = new (Standard ?? Error)();
  if (Standard === undefined) define(error, "name", facts.name);
  if (facts.message !== undefined) define(error, "message", facts.message);
  define(error, "stack", facts.stack);
  if (facts.hasCause) define(error, "cause", facts.cause);
  return error;
}

function define(error: Error, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, writable: true, enumerable: false, configurable: true });
}
