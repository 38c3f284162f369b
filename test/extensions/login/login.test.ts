import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { startFakeAnthropic } from "../../support/fake-anthropic.ts";

let daemon: TestDaemon;
const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await daemon.stop();
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});
const start = async (options: StartOptions = {}) => {
  daemon = await startDaemon({ watch: false, env: {}, ...options, options: { mode: "rpc-ui", ...options.options } });
  return daemon;
};
const dialog = (method: string) => daemon.next((frame) => frame.type === "extension_ui_request" && frame["method"] === method);
const answer = (request: Frame, value: Record<string, unknown>) =>
  daemon.send({ type: "extension_ui_response", id: request["id"], ...value });
const stored = () => JSON.parse(readFileSync(join(daemon.home, "auth.json"), "utf8")) as Record<string, unknown>;

async function fakeAnthropic() {
  const fake = await startFakeAnthropic();
  cleanUps.push(() => fake.close());
  return fake;
}

/** OpenRouter's exchange of a code for a key; it checks the proof. */
async function fakeOpenRouter(challenge: () => string): Promise<{ url: string; seen: unknown[] }> {
  const seen: unknown[] = [];
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
    seen.push({ path: request.url, body });
    const proof = body && createHash("sha256").update(body.code_verifier).digest("base64url");
    const isGood = request.url === "/api/v1/auth/keys" && body.code === "good-code" && proof === challenge();
    response.writeHead(isGood ? 200 : 403, { "content-type": "application/json" });
    response.end(JSON.stringify(isGood ? { key: "sk-or-key-1" } : { error: "bad code" }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanUps.push(
    () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(resolve);
      }),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

describe("login with an API key", () => {
  it("shows the page, takes the pasted key, checks and stores it (case 25)", async () => {
    const fake = await fakeAnthropic();
    await start({ env: { ANTHROPIC_BASE_URL: fake.url } });
    expect(await daemon.ask("get_login_providers")).toMatchObject({
      providers: expect.arrayContaining([
        { id: "anthropic", name: "Anthropic", available: true, authenticated: false },
        { id: "openai", name: "OpenAI", available: true, authenticated: false },
        { id: "openrouter", name: "OpenRouter", available: true, authenticated: false },
      ]),
    });
    const done = daemon.request("login", { providerId: "anthropic" });
    expect(await dialog("open_url")).toMatchObject({ url: expect.stringContaining("https://"), credential: "api-key" });
    const question = await dialog("input");
    expect(question).toMatchObject({ title: expect.stringContaining("Anthropic"), timeout: 600_000 });
    // Other commands go on meanwhile.
    await daemon.ask("get_state");
    answer(question, { value: "  sk-test-123  " });
    expect(await done).toMatchObject({ success: true, data: { providerId: "anthropic" } });
    expect(stored()).toEqual({ anthropic: { type: "api_key", key: "sk-test-123" } });
    expect(statSync(join(daemon.home, "auth.json")).mode & 0o777).toBe(0o600);
    expect(statSync(daemon.home).mode & 0o777).toBe(0o700);
    const { providers } = (await daemon.ask("get_login_providers")) as { providers: { id: string; authenticated: boolean }[] };
    expect(providers.find(({ id }) => id === "anthropic")?.authenticated).toBe(true);
    expect(JSON.stringify(daemon.frames)).not.toContain("sk-test-123");
  });

  it("refuses a key that the service refuses, and an empty one; nothing is stored", async () => {
    const fake = await fakeAnthropic();
    await start({ env: { ANTHROPIC_BASE_URL: fake.url }, answers: { input: { value: "bad-key" } } });
    expect(await daemon.request("login", { providerId: "anthropic" })).toMatchObject({
      success: false,
      error: expect.stringMatching(/^Anthropic does not accept this key: 401/),
    });
    expect(() => stored()).toThrow();
    await daemon.stop();
    await start({ answers: { input: { cancelled: true } } });
    expect(await daemon.request("login", { providerId: "anthropic" })).toMatchObject({
      success: false,
      error: "No API key was entered",
    });
    expect(await daemon.request("login", { providerId: "nobody" })).toMatchObject({
      success: false,
      error: "Unknown OAuth provider: nobody",
    });
  });

  it("stores a key that cannot be checked, and says so", async () => {
    await start({ env: { ANTHROPIC_BASE_URL: "http://127.0.0.1:9" }, answers: { input: { value: "sk-test-123" } } });
    expect(await daemon.request("login", { providerId: "anthropic" })).toMatchObject({ success: true });
    expect(await dialog("notify")).toMatchObject({
      notifyType: "warning",
      message: expect.stringContaining("could not be checked"),
    });
    expect(stored()).toEqual({ anthropic: { type: "api_key", key: "sk-test-123" } });
  });

  it("checks the key through the proxy of the environment", async () => {
    const seen: string[] = [];
    const proxy = createServer((request, response) => {
      seen.push(String(request.url));
      response.writeHead(502).end();
    });
    proxy.on("connect", (request, socket) => {
      seen.push(String(request.url));
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    cleanUps.push(() => new Promise((resolve) => proxy.close(resolve)));
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    await start({
      env: { ANTHROPIC_BASE_URL: "http://models.example.invalid", HTTP_PROXY: url },
      answers: { input: { value: "sk-test-123" } },
    });
    expect(await daemon.request("login", { providerId: "anthropic" })).toMatchObject({ success: true });
    expect(seen).toEqual([expect.stringContaining("models.example.invalid")]);
  });

  it("is cancelled by abort, which withdraws the dialog", async () => {
    await start();
    const done = daemon.request("login", { providerId: "openai" });
    const question = await dialog("input");
    expect(await daemon.request("login", { providerId: "openai" })).toMatchObject({ success: false, code: "busy" });
    expect(await daemon.request("abort")).toMatchObject({ success: true });
    expect(await done).toMatchObject({ success: false, code: "cancelled" });
    await daemon.next(
      (frame) => frame.type === "extension_ui_request" && frame["method"] === "cancel" && frame["targetId"] === question["id"],
    );
  });
});

describe("login to OpenRouter", () => {
  async function begin() {
    let challenge = "";
    const service = await fakeOpenRouter(() => challenge);
    await start({ env: { MORTISE_OPENROUTER_URL: service.url } });
    const done = daemon.request("login", { providerId: "openrouter" });
    const page = await dialog("open_url");
    const url = new URL(String(page["url"]));
    challenge = url.searchParams.get("code_challenge") ?? "";
    const callback = new URL(url.searchParams.get("callback_url") ?? "");
    return { service, done, page, callback };
  }

  it("takes the browser's redirect with the right state only, proves possession and closes the server", async () => {
    const { service, done, page, callback } = await begin();
    expect(page).toMatchObject({ credential: "oauth" });
    const launched = await fetch(String(page["launchUrl"]), { redirect: "manual" });
    expect(launched.headers.get("location")).toBe(page["url"]);
    const forged = new URL(callback);
    forged.pathname = "/callback/other";
    forged.searchParams.set("code", "good-code");
    expect((await fetch(forged)).status).toBe(400);
    callback.searchParams.set("code", "good-code");
    expect((await fetch(callback)).status).toBe(200);
    expect(await done).toMatchObject({ success: true, data: { providerId: "openrouter" } });
    expect(stored()).toEqual({ openrouter: { type: "api_key", key: "sk-or-key-1" } });
    expect(service.seen).toHaveLength(1);
    await expect(fetch(callback)).rejects.toThrow();
  });

  it("takes a pasted address as well, and refuses one of another login", async () => {
    const { done, callback } = await begin();
    const first = await dialog("input");
    const foreign = new URL(callback);
    foreign.pathname = "/callback/other";
    foreign.searchParams.set("code", "good-code");
    answer(first, { value: foreign.href });
    callback.searchParams.set("code", "good-code");
    answer(await dialog("input"), { value: callback.href });
    expect(await done).toMatchObject({ success: true });
  });

  it("keeps what was stored when the exchange fails", async () => {
    const { done } = await begin();
    answer(await dialog("input"), { value: "bad-code" });
    expect(await done).toMatchObject({ success: false, error: expect.stringContaining("status 403") });
    expect(() => stored()).toThrow();
  });

  it("closes the server when it is aborted", async () => {
    const { done, callback } = await begin();
    await daemon.request("abort");
    expect(await done).toMatchObject({ success: false, code: "cancelled" });
    await expect(fetch(callback)).rejects.toThrow();
  });
});

describe("/login and /logout", () => {
  it("logs in by name and forgets again", async () => {
    const fake = await fakeAnthropic();
    await start({ env: { ANTHROPIC_BASE_URL: fake.url }, answers: { input: { value: "sk-test-123" } } });
    await daemon.prompt("/login anthropic");
    expect(stored()).toEqual({ anthropic: { type: "api_key", key: "sk-test-123" } });
    expect(await daemon.slash("/login status")).toMatch(/^anthropic +logged in$/m);
    await daemon.prompt("/logout anthropic");
    expect(stored()).toEqual({});
    const status = await daemon.slash("/login status");
    expect(status.split("\n").map((line) => line.split(/ {2,}/)[0])).toEqual(["anthropic", "openai", "openrouter"]);
    expect(status).not.toMatch(/^anthropic +logged in$/m);
    const outputs = daemon.frames.filter((frame) => frame.type === "command_output").map((frame) => frame["text"]);
    expect(outputs.filter((text) => text === status || /^Logged/.test(String(text)))).toEqual([
      "Logged in to anthropic",
      "Logged out of anthropic",
      status,
    ]);
    expect(JSON.stringify(daemon.frames)).not.toContain("sk-test-123");
  });
});
