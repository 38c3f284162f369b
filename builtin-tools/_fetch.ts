// Getting a web page: size, time and redirects are limited, and addresses inside the machine or its network are refused. The
// check looks at the address that is connected to, at every hop, so a name that resolves differently later gains nothing.
import { lookup as dnsLookup } from "node:dns";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { errorMessage, formatBytes, ToolError } from "mortise/extension";

const MAX_REDIRECTS = 5;
const MAX_BYTES = 10 * 1024 * 1024;
const TIMEOUT_MS = 30_000;

export interface Page {
  url: string;
  finalUrl: string;
  status: number;
  contentType: string;
  body: Buffer;
}

export interface FetchOptions {
  signal: AbortSignal;
  /** Addresses of this machine and of private networks may be asked. */
  allowPrivate: boolean;
  headers?: Record<string, string> | undefined;
  timeoutMs?: number | undefined;
  maxBytes?: number | undefined;
}

/** @throws {ToolError} for addresses that are refused, failures of the network, statuses of 400 and above, and too much data */
export async function fetchPage(url: string, options: FetchOptions): Promise<Page> {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
  let current = parseUrl(url);
  let headers = options.headers;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const response = await open(current, { ...options, headers, signal }).catch((error: unknown) => {
      throw asToolError(error, current, options.signal, timeoutMs);
    });
    const status = response.statusCode ?? 0;
    const location = status >= 300 && status < 400 ? response.headers.location : undefined;
    if (location !== undefined) {
      response.destroy();
      const next = parseUrl(location, current);
      // A key must not follow to another server.
      if (next.origin !== current.origin) headers = undefined;
      current = next;
      continue;
    }
    const body = await readBody(response, options.maxBytes ?? MAX_BYTES).catch((error: unknown) => {
      throw asToolError(error, current, options.signal, timeoutMs);
    });
    if (status >= 400)
      throw new ToolError(`Cannot read ${current.href}: the server answered ${status} ${response.statusMessage ?? ""}`.trimEnd());
    return { url, finalUrl: current.href, status, contentType: response.headers["content-type"] ?? "", body };
  }
  throw new ToolError(`Cannot read ${url}: more than ${MAX_REDIRECTS} redirects`);
}

function parseUrl(text: string, base?: URL): URL {
  let url: URL;
  try {
    url = new URL(text, base);
  } catch (error) {
    throw new ToolError(`Cannot read "${text}": it is not a valid URL`, { cause: error });
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ToolError(`Cannot read ${url.href}: only http and https are followed`);
  }
  url.hash = "";
  return url;
}

function open(url: URL, options: FetchOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (!options.allowPrivate && isIP(host) && isPrivate(host)) {
      reject(refused(host));
      return;
    }
    const send = url.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send(url, {
      signal: options.signal,
      lookup: options.allowPrivate ? undefined : publicLookup,
      // No kept connection: it would be reused without a look-up.
      agent: false,
      headers: {
        "user-agent": "mortise (+https://www.npmjs.com/package/mortise)",
        accept: "text/markdown, text/html;q=0.9, application/json;q=0.8, text/*;q=0.7, */*;q=0.1",
        "accept-encoding": "gzip, deflate, br",
        ...options.headers,
      },
    });
    request.on("response", resolve);
    request.on("error", reject);
    request.end();
  });
}

const publicLookup: LookupFunction = (hostname, options, callback) => {
  dnsLookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, "", 0);
    const open = addresses.filter(({ address }) => !isPrivate(address));
    const [first] = open;
    if (first === undefined || open.length < addresses.length) return callback(refused(hostname), "", 0);
    if (options.all) return callback(null, open);
    callback(null, first.address, first.family);
  });
};

function refused(host: string): ToolError {
  return new ToolError(
    `Cannot read from ${host}: it is an address of this machine or of a private network; the setting read.allowPrivateAddresses permits it`,
  );
}

const closedNetworks = new BlockList();
for (const [network, prefix] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
] as const) {
  closedNetworks.addSubnet(network, prefix, "ipv4");
}
// Only 2000::/3 is public; of it 6to4 and Teredo embed IPv4 addresses.
const openIpv6 = new BlockList();
openIpv6.addSubnet("2000::", 3, "ipv6");
const embedding = new BlockList();
embedding.addSubnet("2001::", 32, "ipv6");
embedding.addSubnet("2002::", 16, "ipv6");
embedding.addSubnet("2001:db8::", 32, "ipv6");

/** True for loopback, link-local, private, multicast and reserved addresses, and for what is no address. */
export function isPrivate(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return closedNetworks.check(address, "ipv4");
  if (family !== 6) return true;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return closedNetworks.check(mapped, "ipv4");
  const plain = address.replace(/%.*$/, "");
  return !openIpv6.check(plain, "ipv6") || embedding.check(plain, "ipv6");
}

async function readBody(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of decoded(response)) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > maxBytes) {
      response.destroy();
      throw new ToolError(`Cannot read the page: more than ${formatBytes(maxBytes)}`);
    }
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** The limit counts decompressed bytes. */
function decoded(response: IncomingMessage): Readable {
  const encoding = response.headers["content-encoding"]?.toLowerCase();
  const inflate =
    encoding === "gzip"
      ? createGunzip()
      : encoding === "br"
        ? createBrotliDecompress()
        : encoding === "deflate"
          ? createInflate()
          : undefined;
  return inflate === undefined ? response : pipeline(response, inflate, () => {});
}

function asToolError(error: unknown, url: URL, caller: AbortSignal, timeoutMs: number): unknown {
  if (ToolError.is(error) || caller.aborted) return caller.aborted ? caller.reason : error;
  const timedOut = error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError");
  const reason = timedOut ? `no complete answer within ${timeoutMs / 1000} s` : errorMessage(error);
  return new ToolError(`Cannot read ${url.href}: ${reason}`, { cause: error });
}
