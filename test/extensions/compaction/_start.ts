// A daemon with the scripted model service, and summaries told apart from answers.
import { afterEach, expect } from "vitest";
import { defineTool, type ProviderEvent, type ProviderRequest, z } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import type { Model } from "../../../protocol/model.ts";
import {
  done,
  fail,
  type Reply,
  type ScriptedProvider,
  says,
  scriptedModel,
  scriptedProvider,
} from "../../support/scripted-provider.ts";

export const isSummary = (request: ProviderRequest): boolean =>
  request.systemPrompt[0]?.startsWith("You write hand-over notes") === true;

export const textOf = (message: AgentMessage | undefined): string => {
  if (message === undefined || !("content" in message)) return "";
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
};

/** A text answer that reports usage. */
export const answers = (text: string, input: number, output = 5): Reply => [
  { type: "start" },
  { type: "text_start", index: 0 },
  { type: "text_delta", index: 0, delta: text },
  { type: "text_end", index: 0 },
  { type: "usage", usage: { input, output } },
  done(),
];

/** Tokens of a request as a service would count them: four characters each. */
export function tokensOf(request: ProviderRequest): number {
  const chars = JSON.stringify(request.messages).length + request.systemPrompt.join("").length;
  return Math.ceil((chars + JSON.stringify(request.tools).length) / 4);
}

export interface Scene {
  /** How the model answers; summary requests go to `summary`. */
  answer: (request: ProviderRequest, turn: number) => Reply | AsyncIterable<ProviderEvent>;
  summary?: (request: ProviderRequest, turn: number) => Reply | AsyncIterable<ProviderEvent>;
  model?: Partial<Model>;
  config?: string;
  more?: readonly unknown[];
  noSession?: boolean;
}

/** Gives text of a size; `big 4000`. */
export const big = defineTool({
  name: "big",
  description: "Gives a text of that many characters",
  params: z.object({ chars: z.number(), path: z.string().optional() }),
  run: (_ctx, { chars }) => "word ".repeat(Math.ceil(chars / 5)).slice(0, chars),
});

export async function startScene(
  scene: Scene,
): Promise<{ d: TestDaemon; provider: ScriptedProvider; summaries: () => ProviderRequest[] }> {
  const provider = scriptedProvider((request, turn) =>
    isSummary(request) ? (scene.summary ?? (() => says("## Goal\nSummed up.")))(request, turn) : scene.answer(request, turn),
  );
  const d = await startDaemon({
    watch: false,
    env: {},
    options: { noSession: scene.noSession ?? false, model: "offline/echo" },
    files: { "config.yml": scene.config ?? "compaction:\n  keepRecentTokens: 40\n" },
    extensions: { scripted: [[provider.definition, big, ...(scene.more ?? [])]] },
  });
  d.daemon.conversations.attached.select({ model: { ...scriptedModel, ...scene.model } });
  return { d, provider, summaries: () => provider.requests.filter(isSummary) };
}

/** Starts scenes that end with their test; no extension may have failed in one. Call it once per file. */
export function startingScenes(use: (d: TestDaemon) => void): (scene: Scene) => ReturnType<typeof startScene> {
  let current: TestDaemon;
  afterEach(async () => {
    const errors = ofType(current, "extension_error");
    await current.stop();
    expect(errors).toEqual([]);
  });
  return async (scene) => {
    const made = await startScene(scene);
    current = made.d;
    use(current);
    return made;
  };
}

export const overflow = (request: ProviderRequest, window: number): Reply | undefined =>
  tokensOf(request) > window
    ? [fail(`prompt is too long: ${tokensOf(request)} tokens > ${window} maximum`, "overflow")]
    : undefined;

export const ofType = (d: TestDaemon, type: string): Frame[] => d.frames.filter((frame) => frame.type === type);
