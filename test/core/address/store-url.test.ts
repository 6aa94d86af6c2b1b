import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { SentinelAddress, StoreAddress } from "../../../src/core/address/address.ts";
import { parseStoreAddress } from "../../../src/core/address/store-url.ts";
import { XCache } from "../../../src/xcache.ts";
import { configErrorOf } from "../../config/thrown.ts";
import { MARK, secret } from "../../support/secret.ts";

const nobody = { username: undefined, password: undefined };
const local = [{ host: "localhost", port: 6379 }];

describe("one node", () => {
  const plain = { kind: "standalone", hosts: local, database: 0, tls: false, options: {}, ...nobody };

  it.each([
    ["redis://localhost", plain],
    ["redis://localhost/", plain],
    ["redis://localhost:6379/0", plain],
    ["REDIS://localhost", plain],
    ["valkey://localhost", plain],
    ["rediss://localhost", { ...plain, tls: true }],
    ["valkeys://localhost", { ...plain, tls: true }],
    ["redis://localhost/15", { ...plain, database: 15 }],
    ["redis://localhost?db=3", { ...plain, database: 3 }],
    ["redis://localhost/?db=3&", { ...plain, database: 3 }],
    ["redis://:pw@localhost", { ...plain, password: "pw" }],
    ["redis://user:pw@localhost", { ...plain, username: "user", password: "pw" }],
    ["redis://user@localhost", { ...plain, username: "user" }],
    ["redis://user:@localhost", { ...plain, username: "user" }],
    ["redis://u%3As%40er:p%2Fw%25%C3%BC@localhost", { ...plain, username: "u:s@er", password: "p/w%ü" }],
    ["redis://user:a:b@c@localhost", { ...plain, username: "user", password: "a:b@c" }],
    ["redis://@localhost", plain],
    ["redis://:@localhost", plain],
    ["redis://[::1]", { ...plain, hosts: [{ host: "::1", port: 6379 }] }],
    [
      "redis://:pw@[fe80::1%25eth0]:7000/2",
      { ...plain, password: "pw", database: 2, hosts: [{ host: "fe80::1%eth0", port: 7000 }] },
    ],
    ["redis://127.0.0.1:1", { ...plain, hosts: [{ host: "127.0.0.1", port: 1 }] }],
    [
      "redis://my_host-1.example.org:65535",
      { ...plain, hosts: [{ host: "my_host-1.example.org", port: 65_535 }] },
    ],
    [
      "rediss://h?tls_ca_file=/etc/ca%20file.pem&tls_cert_file=c&tls_key_file=k&tls_server_name=s&tls_verify=false",
      {
        ...plain,
        hosts: [{ host: "h", port: 6379 }],
        tls: true,
        options: {
          tlsCaFile: "/etc/ca file.pem",
          tlsCertFile: "c",
          tlsKeyFile: "k",
          tlsServerName: "s",
          tlsVerify: false,
        },
      },
    ],
  ])("%s", (url, address) => {
    expect(parseStoreAddress(url)).toEqual(address);
  });
});

describe("clusters, sentinels and sockets", () => {
  const two = [
    { host: "h1", port: 7000 },
    { host: "::1", port: 6379 },
  ];
  it.each(["redis+cluster", "valkey+cluster", "rediss+cluster", "valkeys+cluster"])(
    "%s:// has many hosts",
    (scheme) => {
      expect(parseStoreAddress(`${scheme}://u:p@h1:7000,[::1]/0`)).toEqual({
        kind: "cluster",
        hosts: two,
        username: "u",
        password: "p",
        tls: scheme.startsWith("rediss") || scheme.startsWith("valkeys"),
        options: {},
      });
    },
  );

  it.each(["redis+sentinel", "valkey+sentinel", "rediss+sentinel", "valkeys+sentinel"])(
    "%s:// names the master and has its own default port",
    (scheme) => {
      const url = `${scheme}://u:p@h1:7000,h2/my%20master/3?sentinel_username=s&sentinel_password=t%26t`;
      expect(parseStoreAddress(url)).toEqual({
        kind: "sentinel",
        hosts: [
          { host: "h1", port: 7000 },
          { host: "h2", port: 26_379 },
        ],
        username: "u",
        password: "p",
        tls: scheme.startsWith("rediss") || scheme.startsWith("valkeys"),
        name: "my master",
        database: 3,
        options: { sentinelUsername: "s", sentinelPassword: "t&t" },
      });
    },
  );

  it("parses connection options and addresses behind NAT", () => {
    const link = "client_name=app&keep_alive=0&reconnect_pause=0.5&max_reconnect_pause=10";
    const options = { clientName: "app", keepAlive: 0, reconnectPause: 0.5, maxReconnectPause: 10 };
    const nat = "nat_map=10.0.0.1:6379=Host.Example:7001,[fd00::1]:6379=[::1]:7002";
    const natMap = new Map([
      ["10.0.0.1:6379", { host: "Host.Example", port: 7001 }],
      ["fd00::1:6379", { host: "::1", port: 7002 }],
    ]);
    for (const url of [`redis://h?${link}`, `unix:///s?${link}`])
      expect(parseStoreAddress(url)).toMatchObject({ options });
    for (const url of [`redis+cluster://h?${link}&${nat}`, `redis+sentinel://h/m?${link}&${nat}`])
      expect(parseStoreAddress(url)).toMatchObject({ options: { ...options, natMap } });
    const secured = "sentinel_tls=true&sentinel_tls_ca_file=c&sentinel_tls_verify=false";
    expect(parseStoreAddress(`redis+sentinel://h/m?${secured}`)).toMatchObject({
      tls: false,
      options: { sentinelTls: true, sentinelTlsCaFile: "c", sentinelTlsVerify: false },
    });
  });

  it("a sentinel's database can be an option", () => {
    expect(parseStoreAddress("redis+sentinel://h/m?db=4")).toMatchObject({ name: "m", database: 4 });
    expect(parseStoreAddress("redis+sentinel://h/m")).toMatchObject({ name: "m", database: 0 });
  });

  it.each([
    ["unix:///run/redis.sock", { ...nobody, path: "/run/redis.sock", database: 0 }],
    ["unix:///run/my%20redis@1.sock?db=2", { ...nobody, path: "/run/my redis@1.sock", database: 2 }],
    ["unix://u:p@/run/redis.sock", { username: "u", password: "p", path: "/run/redis.sock", database: 0 }],
  ])("%s", (url, address) => {
    expect(parseStoreAddress(url)).toEqual({ kind: "socket", ...address, options: {} });
  });
});

describe("other stores", () => {
  it.each([
    [
      "memcached://h1,h2:1",
      {
        kind: "memcached",
        hosts: [
          { host: "h1", port: 11_211 },
          { host: "h2", port: 1 },
        ],
      },
    ],
    ["memcached://h1/", { kind: "memcached", hosts: [{ host: "h1", port: 11_211 }] }],
    ["memory://", { kind: "memory", options: {} }],
    [
      "memory://?max_entries=10000&max_bytes=1&values=shared",
      { kind: "memory", options: { maxEntries: 10_000, maxBytes: 1, values: "shared" } },
    ],
    ["memory:///?values=copy", { kind: "memory", options: { values: "copy" } }],
    ["file:///var/cache/my%20app", { kind: "file", path: "/var/cache/my app", options: {} }],
    ["file://localhost/var/x@y?max_bytes=9", { kind: "file", path: "/var/x@y", options: { maxBytes: 9 } }],
    ["file:///d?durability=disk", { kind: "file", path: "/d", options: { durability: "disk" } }],
  ])("%s", (url, address) => {
    expect(parseStoreAddress(url)).toEqual(address);
  });
});

describe("invalid addresses", () => {
  it.each([
    [undefined, "kvUrl must be a store address such as redis://localhost:6379/0, got undefined"],
    [{}, "kvUrl must be a store address such as redis://localhost:6379/0, got an object (Object)"],
    ["", "must begin with a scheme"],
    ["localhost:6379", "must begin with a scheme"],
    ["redis:/localhost", "must begin with a scheme"],
    ["://localhost", "must begin with a scheme"],
    ["redsi://h", 'unknown scheme "redsi": did you mean "redis"?'],
    ["redis-cluster://h", 'unknown scheme "redis-cluster": did you mean "redis+cluster"?'],
    ["sentinel://h/m", 'unknown scheme "sentinel": did you mean "redis+sentinel"?'],
    ["memcache://h", 'unknown scheme "memcache": did you mean "memcached"?'],
    ["mem://", 'unknown scheme "mem": '],
    ["http://h", 'unknown scheme "http": use one of redis, '],
    [" redis://h", "must begin with a scheme"],
    ["redis://h ", "white space and control characters must be percent-encoded"],
    ["redis://h\n", "white space and control characters must be percent-encoded"],
    ["redis://h/0#x", "a # must be percent-encoded as %23"],
    ["redis://", "a host is missing"],
    ["redis:///0", "a host is missing"],
    ["redis://:6379", "a host is missing"],
    ["redis://u:p@", "a host is missing"],
    ["redis+cluster://h1,", "a host is missing"],
    ["redis+cluster://,h1", "a host is missing"],
    ["redis://h:0", "a port must be a whole number from 1 to 65535"],
    ["redis://h:65536", "a port must be a whole number from 1 to 65535"],
    ["redis://h:", "a port must be a whole number from 1 to 65535"],
    ["redis://h:port", "a port must be a whole number from 1 to 65535"],
    ["redis://h:+1", "a port must be a whole number from 1 to 65535"],
    ["redis://::1", "a host is missing"],
    ["redis://fe80::1", "an IPv6 host must be in brackets"],
    ["redis://[::1", "a host name contains an invalid character"],
    ["redis://[h]", "must be an IPv6 address"],
    ["redis://[::1]x", "a host name contains an invalid character"],
    ["redis://a b", "white space"],
    ["redis://a\\b", "a host name contains an invalid character"],
    ["redis://h%41", "a host name contains an invalid character"],
    ["redis://h1,h2", "several hosts need redis+cluster:// or redis+sentinel://"],
    ["redis+cluster://h1,h2,h1", "a host is named twice"],
    ["memcached://h,h:11211", "a host is named twice"],
    ["redis+cluster://host:1,HOST:1", "a host is named twice"],
    ["redis://h?reconnect_pause=1", "reconnect_pause must not exceed max_reconnect_pause"],
    ["redis+sentinel://h/m?sentinel_tls_ca_file=c", "the sentinel_tls_ options need sentinel_tls=true"],
    ["redis://u:%zz@h", "the user name or password is not valid percent-encoding"],
    ["redis://%:p@h", "the user name or password is not valid percent-encoding"],
    ["redis://h/x", "the database must be a whole number of at least 0"],
    ["redis://h/-1", "the database must be a whole number of at least 0"],
    ["redis://h/1.5", "the database must be a whole number of at least 0"],
    ["redis://h/1/2", "the database must be a whole number of at least 0"],
    ["redis://h/9999999999", "the database must be a whole number of at least 0"],
    ["redis://h/1?db=1", "the database is given twice"],
    ["redis://h?db=x", 'the option db must be a whole number of at least 0, got "x"'],
    ["redis://h?db=", 'the option db must be a whole number of at least 0, got ""'],
    ["redis://h?db", 'the option db must be a whole number of at least 0, got ""'],
    ["redis://h?db=1&db=1", "the option db is given twice"],
    ["redis://h?db=%zz", "the option db is not valid percent-encoding"],
    ["redis://h?tls_ca_file=x", "the tls_ options need rediss://"],
    ["valkey+cluster://h?tls_verify=false", "the tls_ options need valkeys+cluster://"],
    ["rediss://h?tls_verify=no", 'the option tls_verify must be true or false, got "no"'],
    ["rediss://h?tls_ca_file=", "the option tls_ca_file must be not empty"],
    ["redis+cluster://h/1", "a cluster has database 0 only"],
    ["redis+sentinel://h", "the path must be the master's name"],
    ["redis+sentinel://h/", "the path must be the master's name"],
    ["redis+sentinel://h/a/1/2", "the path must be the master's name"],
    ["redis+sentinel://h/%zz", "the path must be the master's name"],
    ["redis+sentinel://h/a/b", "the database must be a whole number of at least 0"],
    ["redis+sentinel://h/a?sentinel_password=", "must be not empty, got a hidden value"],
    ["unix://", "a socket address has an absolute path and no host"],
    ["unix://run/redis.sock", "a socket address has an absolute path and no host"],
    ["unix:///", "a socket address has an absolute path and no host"],
    ["unix:///run/%00", "a socket address has an absolute path and no host"],
    ["unix:///run/%zz", "a socket address has an absolute path and no host"],
    ["memcached://u:p@h", "memcached takes no user name or password"],
    ["memcached://h/0", "memcached has no databases"],
    ["memory://host", "the memory store has no host or path"],
    ["memory:///x", "the memory store has no host or path"],
    ["memory://?max_entries=0", "the option max_entries must be a whole number of at least 1"],
    ["memory://?max_entries=1e3", "the option max_entries must be a whole number of at least 1"],
    ["memory://?max_bytes=9999999999999999", "the option max_bytes must be a whole number of at least 1"],
    ["memory://?values=own", 'the option values must be copy or shared or frozen, got "own"'],
    ["file://", "a directory must be an absolute path"],
    ["file:///", "a directory must be an absolute path"],
    ["file://dir", "a directory must be an absolute path"],
    ["file://host/dir", "a directory must be an absolute path"],
    ["file://./dir", "a directory must be an absolute path"],
    ["file:///a%00", "a directory must be an absolute path"],
    ["file:///a%2Fb", "a directory must be an absolute path"],
    ["file:///d?durability=none", 'the option durability must be process or disk, got "none"'],
  ])("%j: %s", (url, reason) => {
    const error = configErrorOf(() => parseStoreAddress(url));
    expect(error.code).toBe("CONFIG_INVALID");
    expect(error.message).toContain(reason);
    expect(error.message).toMatch(/^kvUrl\b/);
  });

  it.each([
    ["redis://h?database=1", 'unknown option "database": use one of tls_ca_file, '],
    ["rediss://h?tls_ca=x", 'unknown option "tls_ca": did you mean "tls_ca_file"?'],
    ["memory://?maxEntries=1", 'unknown option "maxEntries": did you mean "max_entries"?'],
    ["memory://?max_entires=1", 'unknown option "max_entires": did you mean "max_entries"?'],
    ["file:///d?max_byte=1", 'unknown option "max_byte": did you mean "max_bytes"?'],
    ["memcached://h?timeout=1", 'unknown option "timeout": this kind of address has no options'],
    ["redis://h?password=x", 'unknown option "password": write the password before the host'],
    ["memory://?__proto__=1", 'unknown option "__proto__": use one of max_entries, max_bytes, values'],
    ["memory://?%zz=1", 'unknown option "%zz": use one of'],
  ])("%s has an unknown option", (url, reason) => {
    const error = configErrorOf(() => parseStoreAddress(url));
    expect(error.code).toBe("CONFIG_UNKNOWN_FIELD");
    expect(error.message).toContain(reason);
  });

  it("the message shows the address without credentials and names the field as the caller does", () => {
    expect(configErrorOf(() => parseStoreAddress("redis://u:hush@h:x/0", "XCACHE_KV_URL")).message).toBe(
      'XCACHE_KV_URL: a port must be a whole number from 1 to 65535, got "redis://***@h:x/0"',
    );
    expect(configErrorOf(() => parseStoreAddress(`redis://${"h".repeat(5_000)}:x`)).message).toMatch(
      /got an address of \d+ characters$/,
    );
  });

  it("any string is either an address or a ConfigError", () => {
    const piece = fc.constantFrom(
      "redis",
      "://",
      ":",
      "/",
      "@",
      "?",
      "=",
      "&",
      "%",
      "[",
      "]",
      ",",
      "h",
      "1",
      "unix",
      "file",
      "memory",
      "db",
    );
    const text = fc.oneof(
      fc.array(fc.nat(0xffff), { maxLength: 30 }).map((units) => String.fromCharCode(...units)),
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
      fc.array(piece, { maxLength: 12 }).map((pieces) => `redis://${pieces.join("")}`),
    );
    fc.assert(
      fc.property(text, (url) => {
        let address: StoreAddress | undefined;
        try {
          address = parseStoreAddress(url);
        } catch {
          configErrorOf(() => parseStoreAddress(url));
        }
        if (address !== undefined) expect(address.kind).toBeTypeOf("string");
      }),
      { numRuns: 500 },
    );
  });
});

describe("credentials", () => {
  it.each([
    "redis+sentinel://h/m?sentinel_password=HUNTER&SECRET",
    "redis+sentinel://h/m?sentinel_password=HUNTER&SECRET=1",
    "redis+sentinel://h/m?sentinel_password=HUNTER&db=SECRET",
    "redis://u:HUNTER/SECRET",
    "redis://u:HUNTER,SECRET",
    "redis://u:HUNTER#SECRET",
    "redis://u:HUNTER?SECRET",
    "redis://h:1,u:HUNTER/SECRET",
    "redis+cluster://u:HUNTER,SECRET",
    "unix://u:HUNTER/SECRET",
    "unix://u:HUNTER,SECRET",
    "unix://u:HUNTER#SECRET",
    "unix://u:HUNTER?SECRET",
    "redis://h:0?pw=HUNTER&SECRET",
  ])("no part of the password in %s is shown", (kvUrl) => {
    const error = configErrorOf(() => new XCache({ kvUrl }));
    expect(inspect(error, { depth: 10, showHidden: true })).not.toMatch(/HUNTER|SECRET/);
  });

  it("an unknown option after a secret is treated as part of it", () => {
    const error = configErrorOf(() => parseStoreAddress("redis+sentinel://h/m?sentinel_password=a&b"));
    expect(error.code).toBe("CONFIG_UNKNOWN_FIELD");
    expect(error.message).toBe(
      "kvUrl: unknown option after sentinel_password, not shown: a & in a value must be written as %26",
    );
  });

  const scheme = fc.constantFrom(
    "redis",
    "rediss",
    "redis+cluster",
    "redis+sentinel",
    "unix",
    "memcached",
    "memory",
    "file",
    "rediz",
    "",
  );
  const rest = fc.constantFrom(
    "",
    "h",
    "h:x",
    "h:99999",
    "h/zero",
    "h/0?nope=1",
    "h1,h2",
    "h,",
    "[::1]:1",
    "h/m?db=x",
    "/run/x.sock?db=y",
  );

  it("no message ever contains a user name or password, raw or encoded", () => {
    fc.assert(
      fc.property(scheme, secret, secret, fc.boolean(), rest, (kind, user, password, encoded, tail) => {
        const put = encoded ? encodeURIComponent : (text: string) => text;
        for (const login of [
          `${put(user)}:${put(password)}`,
          `:${put(password)}`,
          put(user),
          `u:${put(password)}`,
          `u:1${put(password)}`,
        ]) {
          try {
            parseStoreAddress(`${kind}${kind === "" ? "" : "://"}${login}@${tail}`);
          } catch {
            const error = configErrorOf(() =>
              parseStoreAddress(`${kind}${kind === "" ? "" : "://"}${login}@${tail}`),
            );
            expect(`${error.message} ${error.hint} ${String(error.cause)}`).not.toContain(MARK);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it("encoded credentials are decoded exactly, whatever their characters", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1 });
    fc.assert(
      fc.property(text, text, (username, password) => {
        const address = parseStoreAddress(
          `redis://${encodeURIComponent(username)}:${encodeURIComponent(password)}@h`,
        );
        expect(address).toMatchObject({ username, password });
      }),
    );
  });
});

describe("types", () => {
  it("the kind determines what an address holds", () => {
    const address = parseStoreAddress("redis+sentinel://h/m");
    expectTypeOf(address).toEqualTypeOf<StoreAddress>();
    if (address.kind === "sentinel") expectTypeOf(address).toEqualTypeOf<SentinelAddress>();
    // @ts-expect-error a memory store has no hosts
    if (address.kind === "memory") expect(address.hosts).toBeUndefined();
    expect(address.kind).toBe("sentinel");
  });
});
