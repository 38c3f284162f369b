// Cost of a streamed delta by length of the answer and by length of the conversation: both must stay flat. Prints; asserts
// nothing. Run: npx tsx test/bench/stream-fold.mjs
import { Answer } from "../../core/agent/answer.ts";
import { streamAnswer } from "../../core/agent/stream.ts";
import { scriptedModel } from "../support/scripted-provider.ts";

async function* flood(count) {
  yield { type: "text_start", index: 0 };
  for (let n = 0; n < count; n++) yield { type: "text_delta", index: 0, delta: "twelve chars" };
  yield { type: "text_end", index: 0 };
  yield { type: "done", stopReason: "stop" };
}

async function stream(count, mode) {
  let bytes = 0;
  let frames = 0;
  const started = performance.now();
  await streamAnswer(
    {
      model: scriptedModel,
      signal: new AbortController().signal,
      now: Date.now,
      mode: () => mode,
      congested: () => false,
      onDrain: () => () => {},
      messageStart: () => {},
      messageUpdate: (message, event) => {
        frames++;
        bytes += JSON.stringify({ type: "message_update", message, assistantMessageEvent: event }).length;
      },
    },
    () => flood(count),
  );
  const ms = performance.now() - started;
  return { ms, frames, bytes };
}

function foldOnly(count) {
  const answer = new Answer(scriptedModel, 0);
  answer.apply({ type: "text_start", index: 0 });
  const started = performance.now();
  for (let n = 0; n < count; n++) answer.apply({ type: "text_delta", index: 0, delta: "twelve chars" });
  return performance.now() - started;
}

foldOnly(50_000);
await stream(20_000, "full");
console.log("deltas     fold us/delta   full: us/delta  frames  bytes/text   delta: us/delta  frames  bytes/text");
for (const count of [1_000, 5_000, 20_000, 100_000, 400_000]) {
  const text = count * 12;
  const fold = (foldOnly(count) * 1000) / count;
  const full = await stream(count, "full");
  const delta = await stream(count, "delta");
  const row = (result) =>
    `${((result.ms * 1000) / count).toFixed(2).padStart(12)} ${String(result.frames).padStart(7)} ${(result.bytes / text).toFixed(1).padStart(9)}`;
  console.log(`${String(count).padStart(7)} ${fold.toFixed(3).padStart(14)}  ${row(full)}    ${row(delta)}`);
}
