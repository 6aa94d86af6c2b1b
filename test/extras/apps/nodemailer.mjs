import { once } from "node:events";
import { createServer } from "node:net";
import { AlertManager, XCache } from "xcache";
import { check, works } from "./check.mjs";

/** A mail server that accepts everything, and the first message it gets. */
let deliver;
const delivered = new Promise((resolve) => {
  deliver = resolve;
});
const server = createServer((socket) => {
  let isData = false;
  let text = "";
  socket.setEncoding("utf8").on("error", () => {});
  socket.write("220 here\r\n");
  socket.on("data", (chunk) => {
    text += chunk;
    for (let end = text.indexOf("\r\n"); end >= 0; end = text.indexOf("\r\n")) {
      if (isData) {
        const done = text.indexOf("\r\n.\r\n");
        if (done < 0) return;
        deliver(text.slice(0, done));
        text = text.slice(done + 5);
        isData = false;
        socket.write("250 taken\r\n");
        continue;
      }
      const [word] = text.slice(0, end).split(" ");
      text = text.slice(end + 2);
      isData = word.toUpperCase() === "DATA";
      socket.write(isData ? "354 go on\r\n" : word.toUpperCase() === "QUIT" ? "221 bye\r\n" : "250 fine\r\n");
    }
  });
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const cache = new XCache({ kvUrl: "memory://" });
const smtp = { host: "127.0.0.1", port: server.address().port, from: "a@example.com", requireTls: false };
const alerts = new AlertManager(cache, { interval: 0.05, smtp });
alerts.addAlert({
  name: "in use",
  metric: "total_operations",
  comparison: "greater_or_equal",
  threshold: 0,
  emailRecipients: ["b@example.com"],
});
alerts.start();
check((await delivered).includes("in use"), true, "the message names the alert");
await alerts.stop();
works("nodemailer");
