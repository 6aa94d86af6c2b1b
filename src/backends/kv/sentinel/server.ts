// A store on the server that sentinels call the master, followed when they call another one so.
import type { SentinelAddress } from "../../../core/address/address.ts";
import { ConnectionError } from "../../../core/errors.ts";
import { SingleServer } from "../commands/single-server.ts";
import { nameOf } from "../server/endpoint.ts";
import type { NodeHost } from "../server/node.ts";
import { SentinelWatch } from "./sentinel.ts";

export class SentinelServer extends SingleServer {
  readonly #watch: SentinelWatch;

  constructor(address: SentinelAddress, host: NodeHost) {
    const watch = new SentinelWatch(address, host.settings, {
      switched: (master) => {
        this.nodes[0].renew(new ConnectionError(`the sentinels have made ${nameOf(master)} the master`));
      },
      report: host.report,
    });
    super(() => watch.where(), {
      ...host,
      met: (node, connection) => {
        watch.accepted(connection.endpoint);
        return host.met(node, connection);
      },
      down: (node, error) => {
        watch.doubted();
        host.down(node, error);
      },
    });
    this.#watch = watch;
  }

  override close(): void {
    this.#watch.close();
    super.close();
  }
}
