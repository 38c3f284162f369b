import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createSocketServer } from "node:net";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { ToolDefinition } from "mortise/extension";
import { Uris } from "mortise/extension";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isPrivate } from "../../builtin-tools/_fetch.ts";
import readUnit from "../../builtin-tools/read.ts";
import { sharp } from "../support/sharp.ts";
import { type Bench, bench, textOf } from "./_support.ts";

const read = readUnit.find((definition): definition is (typeof readUnit)[0] & ToolDefinition => definition.kind === "tool");
if (read === undefined) throw new Error("read.ts contributes no tool");

let b: Bench;
beforeEach(() => {
  b = bench({ settings: { "read.allowPrivateAddresses": true } });
});
afterEach(() => b.close());

const put = (name: string, content: string | Buffer) => writeFileSync(join(b.cwd, name), content);
const call = (path: string, more: Record<string, unknown> = {}) => b.call(read, { path, ...more });

describe("text", () => {
  test("comes as it is", async () => {
    put("a.txt", "one\n  two\n");
    expect(await call("a.txt")).toMatchObject({
      content: [{ text: "one\n  two\n" }],
      details: { resolvedPath: join(b.cwd, "a.txt") },
    });
    expect(textOf(await call("@a.txt"))).toBe("one\n  two\n");
  });

  test("a range without an end goes on to the last line", async () => {
    put("a.txt", "one\ntwo\nthree\n");
    expect(textOf(await call("a.txt:2-"))).toBe("two\nthree\n");
    expect(textOf(await call("a.txt:1,3-"))).toContain("[Lines 3-3 of 3]\nthree");
  });

  test("a carriage return that ends no line is shown, as every control character", async () => {
    put("a.txt", "10%\r20%\r\nx\ry");
    expect(textOf(await call("a.txt"))).toBe(
      "10%\\x0d20%\nx\\x0dy\n\n[Line ends are CRLF; Control characters are shown as \\xNN]",
    );
    expect(textOf(await call("a.txt:raw"))).toBe("10%\r20%\r\nx\ry");
  });

  test("what stands in the way of a path is named", async () => {
    put("a.txt", "x");
    symlinkSync("nowhere", join(b.cwd, "dangling"));
    symlinkSync("loop", join(b.cwd, "loop"));
    expect(textOf(await call("dangling"))).toBe(
      "No such file or directory: dangling is a symbolic link to nowhere, which does not exist",
    );
    expect(textOf(await call("loop"))).toBe("Cannot read loop: too many symbolic links");
    expect(textOf(await call("a.txt/b"))).toBe("No such file or directory: a.txt/b; a part of its path is a file");
    expect(textOf(await call("none/b"))).toBe("No such file or directory: none/b; its directory does not exist either");
    expect(textOf(await call("a.txt "))).toContain("similar names there: a.txt");
    put("wide.txt", Buffer.from("hello, world\n", "utf16le"));
    expect(textOf(await call("wide.txt"))).toContain("it is UTF-16 text without a byte order mark of 26 B");
  });

  test("names the next offset when cut by lines", async () => {
    put("n.txt", Array.from({ length: 2500 }, (_, index) => `${index + 1}\n`).join(""));
    const result = await call("n.txt");
    expect(textOf(result)).toMatch(/\n2000\n\n\[Lines 1-2000 of 2500 shown; continue with offset=2001\]$/);
    expect(result.details).toMatchObject({ truncation: { truncatedBy: "lines", totalLines: 2500, outputLines: 2000 } });
    expect(textOf(await call("n.txt", { offset: 2001 }))).toMatch(/^2001\n[\s\S]*\n2500\n$/);
  });

  test.each([
    [":3", "3\n4\n5\n"],
    [":2-3", "2\n3\n\n[Lines 2-3 of 5 shown; continue with offset=4]"],
    [":4+2", "4\n5\n"],
    [":raw", "1\n2\n3\n4\n5\n"],
  ])("takes the selector %s", async (selector, expected) => {
    put("f.txt", "1\n2\n3\n4\n5\n");
    expect(textOf(await call(`f.txt${selector}`))).toBe(expected);
  });

  test("prefers a file that is really named so to a selector", async () => {
    put("f.txt", "plain");
    put("f.txt:2", "odd name");
    expect(textOf(await call("f.txt:2"))).toBe("odd name");
  });

  test("cuts one endless line on a whole character", async () => {
    put("long.txt", `${"a".repeat(51199)}${"🧪".repeat(2000)}`);
    const text = textOf(await call("long.txt"));
    expect(text).not.toContain("\ufffd");
    expect(text).toContain("too long and shown in part");
  });

  test("an offset behind the end is an error that names the length", async () => {
    put("a.txt", "one\ntwo");
    expect(await call("a.txt", { offset: 9 })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("2 lines") }],
    });
  });

  test("makes control characters visible and keeps :raw", async () => {
    put("c.txt", "a\x1b[31mb\r\nc");
    expect(textOf(await call("c.txt"))).toBe("a\\x1b[31mb\nc\n\n[Line ends are CRLF; Control characters are shown as \\xNN]");
    expect(textOf(await call("c.txt:raw"))).toBe("a\x1b[31mb\r\nc");
  });

  test("UTF-16 and invalid UTF-8 are decoded and said", async () => {
    put("u.txt", Buffer.from("\ufeffhé", "utf16le"));
    expect(textOf(await call("u.txt"))).toBe("hé\n\n[Decoded from utf-16le]");
    put("k.txt", Buffer.from([0xb0, 0xa1, 10]));
    expect(textOf(await call("k.txt"))).toContain("not UTF-8");
  });

  test("counts the lines of a large file without keeping it", async () => {
    put("big.txt", "0123456789\n".repeat(500_000));
    const before = process.memoryUsage().arrayBuffers;
    expect(textOf(await call("big.txt:499999-500000"))).toBe("0123456789\n0123456789\n");
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(3_000_000);
  });
});

describe("other things", () => {
  test("a directory is a tree of two levels", async () => {
    mkdirSync(join(b.cwd, "d/e/f"), { recursive: true });
    put("d/e/x", "");
    put("d/a", "");
    expect(textOf(await call("."))).toBe("./\n  d/\n    e/ (2 entries)\n    a");
    expect(await call("d")).toMatchObject({ details: { isDirectory: true } });
  });

  test("a missing file names similar ones", async () => {
    put("readme.md", "");
    expect(textOf(await call("README.md"))).toContain("similar names there: readme.md");
  });

  test("a named pipe, a socket and a device are refused before they are opened", async () => {
    execFileSync("mkfifo", [join(b.cwd, "pipe")]);
    expect(textOf(await call("pipe"))).toContain("named pipe");
    expect(textOf(await call("/dev/zero"))).toContain("character device");
    const server = createSocketServer().listen(join(b.cwd, "sock"));
    await new Promise((resolve) => server.once("listening", resolve));
    expect(textOf(await call("sock"))).toContain("socket");
    server.close();
  });

  test("binary data and damaged PDFs are refused with kind and size", async () => {
    put("x.pdf", `%PDF-1.7\n${"x".repeat(3000)}`);
    expect(textOf(await call("x.pdf"))).toBe("Cannot read x.pdf: it is a PDF document of 2.9 KB, but damaged or without pages");
    put("x.bin", Buffer.from([0, 1, 2, 3]));
    expect(textOf(await call("x.bin"))).toContain("binary data of 4 B");
  });

  test("a notebook becomes text", async () => {
    const cells = [
      {
        cell_type: "code",
        source: ["x = 1\n", "x"],
        outputs: [{ output_type: "execute_result", data: { "text/plain": ["1"] } }],
      },
    ];
    put("n.ipynb", JSON.stringify({ cells }));
    expect(textOf(await call("n.ipynb"))).toBe("=== cell 1 (code)\nx = 1\nx\n--- output\n1\n");
    expect(textOf(await call("n.ipynb:raw"))).toContain('"cell_type"');
  });

  test.skipIf(sharp === undefined)("an image is recognised by content and shown", async () => {
    if (sharp === undefined) return;
    const png = await sharp({ create: { width: 3, height: 2, channels: 3, background: "red" } })
      .png()
      .toBuffer();
    put("picture.txt", png);
    const result = await call("picture.txt");
    expect(result.content[1]).toEqual({ type: "image", data: png.toString("base64"), mimeType: "image/png" });
  });

  test.skipIf(sharp === undefined)("a large image is made smaller, a damaged one refused", async () => {
    if (sharp === undefined) return;
    const big = await sharp({ create: { width: 3000, height: 1000, channels: 3, background: "red" } })
      .jpeg()
      .toBuffer();
    put("big.jpg", big);
    const image = (await call("big.jpg")).content[1];
    const shown = await sharp(Buffer.from(image?.type === "image" ? image.data : "", "base64")).metadata();
    expect([shown.width, shown.height]).toEqual([2000, 667]);
    put("bad.jpg", big.subarray(0, big.length / 2));
    expect(await call("bad.jpg")).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("damaged") }] });
  });

  test("a path with NUL is refused", async () => {
    expect(textOf(await call("a\0b"))).toContain("NUL");
  });

  test("symbolic links are followed", async () => {
    put("a.txt", "x");
    symlinkSync("a.txt", join(b.cwd, "l"));
    expect(textOf(await call("l"))).toBe("x");
  });

  test("a virtual URL goes to its owner, unchanged", async () => {
    const asked: string[] = [];
    const uris = {
      schemeOf: (text: string) => /^(\w+):\/\//.exec(text)?.[1]?.toLowerCase(),
      read: async (url: string) => {
        asked.push(url);
        return { content: "1\n2\n3\n", contentType: "text/plain", notes: ["cached"], immutable: false };
      },
    };
    const own = bench({ services: { [Uris.name]: uris } });
    const result = await own.call(read, { path: "db://Users/42:1-2", offset: 2, limit: 1 });
    expect(asked).toEqual(["db://Users/42:1-2"]);
    expect(textOf(result)).toBe("2\n\n[Lines 2-2 of 3 shown; continue with offset=3]\n\n[cached]".replace("Lines 2-2", "Line 2"));
    await own.close();
  });
});

describe("web pages", () => {
  let server: Server;
  let base: string;
  const long = "Some words that make a paragraph long enough to count as content of the page. ".repeat(5);
  beforeEach(async () => {
    server = createServer((request, response) => {
      if (request.url === "/page") {
        response.setHeader("content-type", "text/html; charset=utf-8");
        response.setHeader("content-encoding", "gzip");
        const body = `<html><head><title>T</title><script>bad()</script></head><body><nav><a href="/n">nav</a></nav><article><h1>Head</h1><p>${long}</p><p>See <a href="/rel">this</a>.</p></article></body></html>`;
        response.end(gzipSync(body));
      } else if (request.url === "/moved") response.writeHead(302, { location: "/page" }).end();
      else if (request.url === "/loop") response.writeHead(302, { location: "/loop" }).end();
      else if (request.url === "/file") response.writeHead(302, { location: "file:///etc/passwd" }).end();
      else if (request.url === "/big")
        response.writeHead(200, { "content-type": "text/plain" }).end(Buffer.alloc(11 * 1024 * 1024, 97));
      else response.writeHead(404).end("no");
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  test("become Markdown with absolute links", async () => {
    const result = await call(`${base}/moved`);
    const text = textOf(result);
    expect(text).toContain("Some words");
    expect(text).toContain(`[this](${base}/rel)`);
    expect(text).not.toContain("bad()");
    expect(result.details).toMatchObject({ finalUrl: `${base}/page`, contentType: "text/html; charset=utf-8" });
    expect(textOf(await call(`${base}/page:raw`))).toContain("<nav>");
  });

  test.each([
    ["/loop", "redirects"],
    ["/file", "only http and https"],
    ["/big", "more than 10.0 MB"],
    ["/none", "404"],
  ])("%s fails with a reason", async (path, reason) => {
    expect(await call(`${base}${path}`)).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(reason) }] });
  });

  test("addresses inside are refused, by number and by name", async () => {
    const closed = bench();
    for (const url of [
      `${base}/page`,
      "http://localhost:9/x",
      "http://[::1]/",
      "http://0x7f.1/",
      "http://169.254.169.254/latest",
    ]) {
      expect(textOf(await closed.call(read, { path: url }))).toContain("private network");
    }
    await closed.close();
  });

  test("knows private addresses in all spellings", () => {
    for (const address of [
      "10.1.1.1",
      "172.31.0.1",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "fd00::1",
      "fe80::1%eth0",
      "64:ff9b::7f00:1",
      "x",
    ]) {
      expect(isPrivate(address), address).toBe(true);
    }
    for (const address of ["8.8.8.8", "172.32.0.1", "2606:4700::1111"]) expect(isPrivate(address), address).toBe(false);
  });
});
