// Both strict services and the built daemon on them, for the same conversation twice.
import { startFakeAnthropic } from "../support/fake-anthropic.ts";
import { startFakeOpenAI } from "../support/fake-openai.ts";
import type { FakeServer } from "../support/fake-provider.ts";
import type { ProcessOptions } from "../support/process.ts";

export interface Under {
  readonly name: string;
  open(): Promise<FakeServer>;
  /** The daemon's side: model, thinking, credential and address. */
  options(fake: FakeServer): ProcessOptions;
}

export const SERVICES: readonly Under[] = [
  {
    name: "anthropic",
    open: startFakeAnthropic,
    options: (fake) => ({
      model: "anthropic/claude-haiku-4-5",
      args: ["--thinking", "low"],
      env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: fake.url },
    }),
  },
  {
    name: "openai",
    open: () => startFakeOpenAI(),
    options: (fake) => ({
      model: "openai/gpt-5.1",
      args: ["--thinking", "low"],
      env: { OPENAI_API_KEY: "k", OPENAI_BASE_URL: `${fake.url}/v1` },
    }),
  },
];

/** A picture of one pixel. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Why requests were refused; empty when the service took them all. */
export function refusals(fake: FakeServer): string[] {
  return fake.requests.flatMap((request) => (request.refusal === undefined ? [] : [request.refusal]));
}

export const bodyOf = (fake: FakeServer, index: number): string => JSON.stringify(fake.requests.at(index)?.body ?? null);
