// The server that a browser comes back to after a login: on 127.0.0.1, for one answer with the right state.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { CommandError, errorMessage } from "mortise/extension";
import { deferred } from "./_deferred.ts";

export interface Loopback {
  readonly port: number;
  /** Short address that leads to the login page; set `target` first. */
  readonly launchUrl: string;
  target: string;
  /** The code of the redirect. Rejects when the service says that the person refused. */
  readonly code: Promise<string>;
  close(): void;
}

/** Listens on `preferredPort`, or on a free one when it is taken. Requests with another state are refused and change nothing. */
export async function openLoopback(state: string, preferredPort: number): Promise<Loopback> {
  let target = "";
  const answer = deferred<string>();
  // Nobody may be waiting any more when it rejects.
  answer.promise.catch(() => {});
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    if (url.pathname === "/launch" && target !== "") {
      response.writeHead(302, { location: target }).end();
      return;
    }
    if (!url.pathname.startsWith("/callback/")) return page(response, 404, "Not found");
    if (url.pathname !== `/callback/${state}`) return page(response, 400, "This login does not belong to a running request");
    const error = url.searchParams.get("error");
    const code = url.searchParams.get("code");
    if (error) {
      answer.reject(new CommandError(`The login was refused: ${error.slice(0, 200)}`, "cancelled"));
      return page(response, 200, "The login was refused. You can close this page");
    }
    if (!code) return page(response, 400, "The code is missing");
    answer.resolve(code);
    page(response, 200, "You are logged in. You can close this page");
  });
  server.on("clientError", (_error, socket) => socket.destroy());
  const port = await listen(server, preferredPort);
  return {
    port,
    launchUrl: `http://localhost:${port}/launch`,
    get target() {
      return target;
    },
    set target(url) {
      target = url;
    },
    code: answer.promise,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listen(server: Server, preferredPort: number): Promise<number> {
  for (const port of [preferredPort, 0]) {
    try {
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(port, "127.0.0.1", () => {
          server.off("error", reject);
          resolve();
        });
      });
      return (server.address() as AddressInfo).port;
    } catch (error) {
      if (port === 0) throw new CommandError(`Cannot listen for the end of the login: ${errorMessage(error)}`, "internal");
    }
  }
  throw new CommandError("Cannot listen for the end of the login", "internal");
}

function page(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    connection: "close",
    "referrer-policy": "no-referrer",
  });
  response.end(`${text}\n`);
}
