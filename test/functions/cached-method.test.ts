// biome-ignore-all lint/complexity/noThisInStatic: the static tests are about which class `this` is
// biome-ignore-all lint/complexity/noStaticOnlyClass: as above
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { ConfigError } from "../../src/core/errors.ts";
import { asCached, cached } from "../../src/functions/cached.ts";
import { setDefaultCache } from "../../src/functions/default-cache.ts";
import { FakeCache } from "./fake-cache.ts";

let cache: FakeCache;
beforeEach(() => {
  cache = new FakeCache();
  setDefaultCache(cache);
});
afterEach(() => setDefaultCache(undefined));

const code = (expected: string): unknown =>
  expect.objectContaining({ constructor: ConfigError, code: expected });
const keys = (): string[] => [...cache.entries.keys()];

/** Classes are created per test, so that each claims its names in a fresh cache. */
function makeUsers() {
  class Users {
    runs = 0;
    table = "users";
    @cached({ ttl: 60, tags: (id) => [`user:${id}`] })
    async find(id: number): Promise<string> {
      this.runs++;
      return `${this.table}/${id}`;
    }
  }
  return Users;
}

describe("a decorated method", () => {
  it("is cached as Class.method with the options given", async () => {
    const users = new (makeUsers())();
    expect([await users.find(1), await users.find(1)]).toEqual(["users/1", "users/1"]);
    expect(users.runs).toBe(1);
    expect(keys()).toEqual(["Users.find(1)"]);
    expect(cache.seen[0]).toEqual({ ttl: 60, tags: ["user:1"] });
  });

  it("may be decorated before the default cache is set, and refuses calls until then", async () => {
    setDefaultCache(undefined);
    const users = new (makeUsers())();
    await expect(users.find(1)).rejects.toThrow(code("NO_DEFAULT_CACHE"));
    setDefaultCache(cache);
    expect(await users.find(1)).toBe("users/1");
  });

  it("has controls bound to their object", async () => {
    const users = new (makeUsers())();
    const find = asCached(users.find);
    await users.find(1);
    expect(find.key(1)).toBe("Users.find(1)");
    users.table = "people";
    expect(await find.uncached(1)).toBe("people/1");
    expect(await users.find(1)).toBe("users/1");
    expect(await find.refresh(1)).toBe("people/1");
    expect(await users.find(1)).toBe("people/1");
    expect(await find.invalidate(1)).toBe(true);
    await find.warm([[2]]);
    expect(keys()).toEqual(["Users.find(2)"]);
  });

  it("can be detached from its object and called", async () => {
    const { find } = new (makeUsers())();
    expect(await find(1)).toBe("users/1");
  });

  it("does not show up among the object's own enumerable properties, and can be replaced", async () => {
    const users = new (makeUsers())();
    expect(Object.keys(users)).toEqual(["runs", "table"]);
    users.find = async () => "mock";
    expect(await users.find(1)).toBe("mock");
  });

  it("shares its results between objects of one class, unless `key` distinguishes them", async () => {
    class Tenants {
      readonly tenant: string;
      constructor(tenant: string) {
        this.tenant = tenant;
      }
      @cached()
      async shared(id: number): Promise<string> {
        return `${this.tenant}/${id}`;
      }
      @cached({
        key(this: Tenants, id) {
          return [this.tenant, id];
        },
      })
      async apart(id: number): Promise<string> {
        return `${this.tenant}/${id}`;
      }
    }
    const [a, b] = [new Tenants("a"), new Tenants("b")];
    expect([await a.shared(1), await b.shared(1)]).toEqual(["a/1", "a/1"]);
    expect([await a.apart(1), await b.apart(1)]).toEqual(["a/1", "b/1"]);
    expect(asCached(b.apart).key(1)).toBe('Tenants.apart(["b",1])');
  });

  it("works without parentheses", async () => {
    class Bare {
      @cached async find(id: number): Promise<number> {
        return id;
      }
    }
    expect(await new Bare().find(1)).toBe(1);
    expect(keys()).toEqual(["Bare.find(1)"]);
  });

  it("may be private, named by a symbol, or static", async () => {
    const by = Symbol("by");
    class Kinds {
      static base = 1;
      @cached() async #hidden(id: number): Promise<number> {
        return id;
      }
      @cached() async [by](id: number): Promise<number> {
        return id;
      }
      @cached() static async total(id: number): Promise<number> {
        return this.base + id;
      }
      open(id: number): Promise<number> {
        return this.#hidden(id);
      }
      refreshHidden(id: number): Promise<number> {
        return asCached(this.#hidden).refresh.call(this, id);
      }
    }
    const kinds = new Kinds();
    expect([await kinds.open(1), await kinds[by](2), await Kinds.total(3)]).toEqual([1, 2, 4]);
    expect(keys()).toEqual(["Kinds.#hidden(1)", "Kinds.[by](2)", "Kinds.total(3)"]);
    expect(await kinds.refreshHidden(1)).toBe(1);
    Kinds.base = 10;
    expect(await asCached(Kinds.total).refresh(3)).toBe(13);
    expect(await Kinds.total(3)).toBe(13);
  });

  it("rejects when its class is unknown", async () => {
    const Users = makeUsers();
    const unbound = Users.prototype.find;
    await expect(Reflect.apply(unbound, undefined, [1])).rejects.toThrow(code("NAME_REQUIRED"));
    await expect(asCached(unbound).refresh(1)).rejects.toThrow("was called without its object");
  });

  it("of a class without a name is refused when an object is created, unless it has a name of its own", async () => {
    const make = (name?: string) => {
      class Thing {
        @cached(name === undefined ? {} : { name })
        async find(id: number): Promise<number> {
          return id;
        }
      }
      return Object.defineProperty(Thing, "name", { value: "" });
    };
    const Nameless = make();
    expect(() => new Nameless()).toThrow(code("NAME_REQUIRED"));
    const Named = make("things");
    expect(await new Named().find(1)).toBe(1);
    expect(keys()).toEqual(["things(1)"]);
  });

  it("is the only thing that can be decorated", () => {
    expect(
      () =>
        class {
          // @ts-expect-error a getter is no method
          @cached() get size(): number {
            return 1;
          }
        },
    ).toThrow("@cached() decorates methods; got a getter.");
    const legacy = cached({}) as unknown as (target: object, name: string, descriptor: object) => void;
    expect(() => legacy({}, "find", {})).toThrow(code("ARGUMENT_INVALID"));
  });
});

describe("types", () => {
  it("check the callbacks of the decorator against the method and its class", () => {
    function tenantAnd(this: { tenant: string }, id: number): unknown {
      return [this.tenant, id];
    }
    class Users {
      table = "users";
      @cached({ tags: (id: number) => [`${id}`], when: (user: string | null) => user !== null })
      async right(id: number, _lang?: string): Promise<string | null> {
        return `${id}`;
      }
      // @ts-expect-error the callback wants a string where the method takes a number
      @cached({ tags: (id: string) => [id] })
      async wrongArgument(id: number): Promise<number> {
        return id;
      }
      // @ts-expect-error the callback wants another result
      @cached({ when: (user: string) => user !== "" })
      async wrongResult(id: number): Promise<number> {
        return id;
      }
      // @ts-expect-error the callback wants another `this`
      @cached({ key: tenantAnd })
      async wrongThis(id: number): Promise<number> {
        return id;
      }
      // @ts-expect-error the wrapper returns a promise, so the method must
      @cached()
      notAsync(id: number): number {
        return id;
      }
    }
    expectTypeOf<Users["right"]>().toEqualTypeOf<(id: number, _lang?: string) => Promise<string | null>>();
  });
});

describe("inheritance", () => {
  it("separates the results of a shared method by class", async () => {
    class Repository {
      table = "none";
      @cached() async find(id: number): Promise<string> {
        return `${this.table}/${id}`;
      }
    }
    class Users extends Repository {
      override table = "users";
    }
    class Orders extends Repository {
      override table = "orders";
    }
    expect([await new Users().find(1), await new Orders().find(1)]).toEqual(["users/1", "orders/1"]);
    expect(keys()).toEqual(["Users.find(1)", "Orders.find(1)"]);
  });

  it("lets an overriding method call the overridden one, whether either or both are cached", async () => {
    class Base {
      @cached() async both(id: number): Promise<string> {
        return `base ${id}`;
      }
      @cached() async plainAbove(id: number): Promise<string> {
        return `base ${id}`;
      }
    }
    class Derived extends Base {
      @cached() override async both(id: number): Promise<string> {
        return `derived of ${await super.both(id)}`;
      }
      override async plainAbove(id: number): Promise<string> {
        return `plain of ${await super.plainAbove(id)}`;
      }
    }
    const derived = new Derived();
    expect(await derived.both(1)).toBe("derived of base 1");
    expect(await derived.plainAbove(1)).toBe("plain of base 1");
    expect(keys().sort()).toEqual(["Derived.both(1)", "Derived>Base.both(1)", "Derived>Base.plainAbove(1)"]);
    expect(await new Base().both(1)).toBe("base 1");
    expect(asCached(derived.both).key(1)).toBe("Derived.both(1)");
  });

  it("of static methods acts on the class it is called on, controls included", async () => {
    class Base {
      static table = "base";
      @cached() static async find(id: number): Promise<string> {
        return `${this.table}/${id}`;
      }
    }
    class Derived extends Base {
      static override table = "derived";
    }
    class Both extends Base {
      static override table = "both";
      @cached() static override async find(id: number): Promise<string> {
        return `over ${await super.find(id)}`;
      }
    }
    expect([await Base.find(1), await Derived.find(1), await Both.find(1)]).toEqual([
      "base/1",
      "derived/1",
      "over both/1",
    ]);
    expect(keys().sort()).toEqual(["Base.find(1)", "Both.find(1)", "Both>Base.find(1)", "Derived.find(1)"]);
    expect(await asCached(Derived.find).invalidate(1)).toBe(true);
    expect(keys()).not.toContain("Derived.find(1)");
    Derived.find = async () => "mock";
    expect([await Derived.find(1), await Base.find(1)]).toEqual(["mock", "base/1"]);
  });

  it("does not let a bound method bypass a decorator in front of it", async () => {
    const log: string[] = [];
    function logged<F extends (this: never, ...args: never[]) => unknown>(
      method: F,
      _: ClassMethodDecoratorContext,
    ): F {
      return function (this: never, ...args: never[]) {
        log.push(`called with ${args}`);
        return method.apply(this, args);
      } as F;
    }
    class Users {
      @logged
      @cached()
      async find(id: number): Promise<number> {
        return id;
      }
    }
    const users = new Users();
    await users.find(1);
    await users.find(1);
    expect(log).toEqual(["called with 1", "called with 1"]);
    expect(keys()).toEqual(["Users.find(1)"]);
  });
});

describe("two classes with one name in one cache", () => {
  it("are refused, even if they inherit the same method", async () => {
    const [First, Second] = [makeUsers(), makeUsers()];
    await new First().find(1);
    await expect(new Second().find(1)).rejects.toThrow(code("NAME_TAKEN"));

    class Base {
      @cached() async find(id: number): Promise<number> {
        return id;
      }
    }
    const derive = () => class Twin extends Base {};
    await new (derive())().find(1);
    await expect(new (derive())().find(1)).rejects.toThrow(code("NAME_TAKEN"));
  });

  it("are refused when an object is created, if the decorator names the cache", () => {
    const make = () => {
      class Users {
        @cached({ cache }) async find(id: number): Promise<number> {
          return id;
        }
      }
      return Users;
    };
    const [First, Second] = [make(), make()];
    expect(new First()).toBeInstanceOf(First);
    expect(new First()).toBeInstanceOf(First);
    expect(() => new Second()).toThrow(code("NAME_TAKEN"));
  });

  it("are refused for an explicit name that two subclasses would share", async () => {
    class Base {
      @cached({ name: "find" }) async find(id: number): Promise<number> {
        return id;
      }
    }
    class Derived extends Base {}
    await new Base().find(1);
    await expect(new Derived().find(1)).rejects.toThrow(code("NAME_TAKEN"));
  });
});
