// Routes all commands to the master that the sentinels name, and follows a failover.
import type { SentinelAddress } from "../../../core/address/address.ts";
import { ConnectionError } from "../../../core/errors.ts";
import { nameOf } from "../../wire/socket.ts";
import { SingleServer } from "../commands/single-server.ts";
import type { NodeHost } from "../server/node.ts";
import { SentinelWatch } from "./sentinel.ts";

export class SentinelServer extends SingleServer {
  readonly #watch: SentinelWatch;

  constructor(address: SentinelAddress, host: NodeHost) {
    const watch = new SentinelWatch(address, host.settings, {
      switched: (master) => {
        this.nodes[0].renew(
          new ConnectionError(`the sentinels announced ${nameOf(master)} as the new master`),
        );
      },
      report: host.report,
    });
    super(() => watch.findMaster(), {
      ...host,
      onServer: (node, connection, setBack) => {
        watch.confirmed(connection.endpoint);
        return host.onServer(node, connection, setBack);
      },
      down: (node, error) => {
        watch.connectionLost();
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
