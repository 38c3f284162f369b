// The way to the network for requests that are no model calls of their own kind as well: one place knows the proxies.
import { createToken } from "../kernel/services.ts";

export interface Transport {
  /** The function to fetch with; through a proxy when HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is set and NO_PROXY leaves the host in. */
  fetch(): Promise<typeof globalThis.fetch>;
}

export const Transport = createToken<Transport>("transport");
