// registerProvider: another address for known models, another provider's wire, a login of its own, and failures of a stream.
import { describe, expect, it } from "vitest";
import { answerOf, errors, start } from "./_start.ts";

const model = (id: string) =>
  `{ id: "${id}", name: "${id}", reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 1000, maxTokens: 100 }`;

describe("registerProvider", () => {
  it("moves known models to another address and gives them back when it is unregistered", async () => {
    const daemon = await start({
      "unit.ts": `export default function (pi) {
        pi.registerProvider("offline", { baseUrl: "moved:" });
        pi.registerCommand("back", { handler: async () => pi.unregisterProvider("offline") });
        pi.registerCommand("where", { handler: async (_args, ctx) => ctx.ui.notify(ctx.modelRegistry.find("offline", "echo").baseUrl) });
      }`,
    });
    try {
      const where = async () => {
        const from = daemon.frames.length;
        await daemon.prompt("/where");
        return (await daemon.next((frame) => frame["method"] === "notify", { after: from }))["message"];
      };
      expect(errors(daemon)).toEqual([]);
      expect(await where()).toBe("moved:");
      await daemon.ask("set_model", { provider: "offline", modelId: "echo" });
      expect(answerOf(await daemon.prompt("still there"))).toContain("still there");
      await daemon.prompt("/back");
      expect(await where()).toBe("offline:");
    } finally {
      await daemon.stop();
    }
  });

  it("borrows the wire of a provider we have", async () => {
    const daemon = await start({
      "unit.ts": `export default (pi) => pi.registerProvider("proxy", { baseUrl: "offline:", apiKey: "k", api: "offline", models: [${model("echo")}] });`,
    });
    try {
      await daemon.ask("set_model", { provider: "proxy", modelId: "echo" });
      expect(answerOf(await daemon.prompt("through the proxy"))).toBe("through the proxy");
    } finally {
      await daemon.stop();
    }
  });

  it("a stream that fails, throws or ends early is an error of the run, and the next run works", async () => {
    const daemon = await start({
      "unit.ts": `
        import { createAssistantMessageEventStream } from "@mariozechner/pi-ai";
        export default function (pi) {
          const streams = {
            fails: () => { const stream = createAssistantMessageEventStream(); stream.push({ type: "error", reason: "error", error: { stopReason: "error", errorMessage: "Service says no" } }); return stream; },
            throws: () => { throw new Error("Cannot start"); },
            nothing: () => undefined,
          };
          pi.registerProvider("bad", {
            baseUrl: "x:", apiKey: "k", api: "bad-api",
            models: [${model("fails")}, ${model("throws")}, ${model("nothing")}],
            streamSimple: (model) => streams[model.id](),
          });
        }`,
    });
    try {
      const failure = async (modelId: string) => {
        await daemon.ask("set_model", { provider: "bad", modelId });
        const frames = await daemon.prompt("try");
        const end = frames.findLast((frame) => frame.type === "message_end");
        return (end?.["message"] as { errorMessage?: string } | undefined)?.errorMessage;
      };
      expect(await failure("fails")).toContain("Service says no");
      expect(await failure("throws")).toContain("Cannot start");
      expect(await failure("nothing")).toContain("gave no stream");
      await daemon.ask("set_model", { provider: "offline", modelId: "echo" });
      expect(answerOf(await daemon.prompt("fine again"))).toBe("fine again");
    } finally {
      await daemon.stop();
    }
  });

  it("a login of its own gives the key that its requests carry", async () => {
    const daemon = await start(
      {
        "unit.ts": `
          import { createAssistantMessageEventStream } from "@mariozechner/pi-ai";
          export default (pi) => pi.registerProvider("sso", {
            baseUrl: "x:", api: "sso-api", models: [${model("m")}],
            oauth: {
              name: "Corporate SSO",
              async login({ onAuth, onPrompt, onProgress }) {
                onAuth({ url: "https://sso.example/start", instructions: "Log in" });
                const code = await onPrompt({ message: "Code" });
                onProgress("checking");
                return { access: "token-" + code, refresh: "r", expires: Date.now() + 3600000, team: "blue" };
              },
              refreshToken: async (credentials) => credentials,
              getApiKey: (credentials) => credentials.access + "/" + credentials.team,
            },
            streamSimple: (model, context, options) => {
              const stream = createAssistantMessageEventStream();
              stream.push({ type: "text_start", contentIndex: 0 });
              stream.push({ type: "text_delta", contentIndex: 0, delta: "key " + options.apiKey });
              stream.push({ type: "done", reason: "stop", message: { usage: {} } });
              return stream;
            },
          });`,
      },
      { answers: { input: { value: "1234" } } },
    );
    try {
      expect(await daemon.request("set_model", { provider: "sso", modelId: "m" })).toMatchObject({ success: false });
      await daemon.ask("login", { providerId: "sso" });
      expect(daemon.frames.some((frame) => frame["method"] === "open_url" && frame["url"] === "https://sso.example/start")).toBe(
        true,
      );
      await daemon.ask("set_model", { provider: "sso", modelId: "m" });
      expect(answerOf(await daemon.prompt("hello"))).toBe("key token-1234/blue");
    } finally {
      await daemon.stop();
    }
  });

  it.each([
    ["no models and no address", `pi.registerProvider("x", {})`, /neither models nor a baseUrl/],
    [
      "a model without api",
      `pi.registerProvider("x", { baseUrl: "y", models: [{ id: "m" }] })`,
      /Model "m" of provider "x" has no api/,
    ],
    ["no name", `pi.registerProvider("", {})`, /needs a name/],
  ])("%s is refused with what is missing", async (_name, code, message) => {
    const daemon = await start({ "unit.ts": `export default (pi) => { ${code}; };` });
    try {
      expect(errors(daemon).map((frame) => frame["error"])).toEqual([expect.stringMatching(message)]);
    } finally {
      await daemon.stop();
    }
  });
});
