// Calls of the server below the page's own address, with the token of `xcache ui` if there is one.
const TOKEN = "xcache-token";

/** The fragment is not sent to any server; it leaves the address bar at once, and the token stays in this tab. */
function takeToken() {
  const given = /^#token=([\w-]+)$/.exec(location.hash)?.[1];
  if (given === undefined) return;
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(null, "", "#overview");
}
takeToken();
// The address with a new token, opened in a tab that has the page already.
addEventListener("hashchange", takeToken);

/** A proxy may serve the page without the slash at its end. */
const base = location.pathname.replace(/\/?$/, "/");

class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function send(name, body, signal) {
  const token = sessionStorage.getItem(TOKEN);
  const response = await fetch(`${base}api/${name}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
    credentials: "same-origin",
    signal,
  });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({ error: response.statusText }));
  throw new ApiError(response.status, error);
}

export const call = async (name, body = {}, signal = undefined) => (await send(name, body, signal)).json();

export async function download(name, body) {
  const blob = await (await send(name, body)).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = "value";
  link.click();
  URL.revokeObjectURL(link.href);
}

/** The objects of a stream, one a line, until it ends or the signal aborts. */
export async function* lines(name, body, signal) {
  const response = await send(name, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      for (const part of parts) yield JSON.parse(part);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
