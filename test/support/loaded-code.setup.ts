// Loads what the library itself loads on first use. On a busy machine the test runner takes longer to compile it than the first
// call of a test may take.
import "lmdb";
import "../../src/backends/disk/records.ts";
import "../../src/backends/kv/client.ts";
import "../../src/backends/kv/several-servers.ts";
import "../../src/backends/memcached/servers.ts";
import "../../src/cache/open-shared.ts";
import "../../src/db/sql/settled-statement.ts";
import "../../src/metrics/history/fleet-activity.ts";
