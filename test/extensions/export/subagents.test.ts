// Transcripts of subagents in an exported page, on every level (agent-semantics §9).
import { readFileSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { type Play, parent, says, spawns, start } from "../subagents/_start.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

async function run(tasks: Record<string, unknown>[], children: Play) {
  const all = await start(parent(tasks, children));
  daemon = all.daemon;
  await all.daemon.prompt("Go");
  const file = String((await all.daemon.ask("get_state"))["sessionFile"]);
  const page = async () => readFileSync(String((await all.daemon.ask("export_html"))["path"]), "utf8");
  return { folder: file.replace(/\.jsonl$/, ""), home: all.daemon.home, page };
}
/** What is between the end of the session and the data. */
const transcripts = (page: string) => page.slice(page.indexOf('<p id="end">'), page.indexOf('<script type="application/json"'));

it("shows what each of them said, theirs inside of them, escaped and masked", async () => {
  const { page } = await run(
    [
      { task: "outer", name: "Outer" },
      { task: "other", name: "Other", agent: "explore" },
    ],
    ({ told, turn }) => {
      if (told === "outer") return turn === 0 ? spawns("c2", { task: "inner", name: "Inner" }) : says("The **outer** answer");
      return told === "inner" ? says("<script>alert(1)</script> with sk-live1234567890abcdef") : says("The other answer");
    },
  );
  const html = transcripts(await page());
  const places = ['id="agent:Outer"', "Subagents (1)", 'id="agent:Outer.Inner"', 'id="agent:Other"'].map((text) =>
    html.indexOf(text),
  );
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(places[0]).toBeGreaterThan(0);
  expect(html).toContain("Subagents (2)");
  expect(html).toContain("explore · completed · other");
  for (const text of ["The <strong>outer</strong> answer", "The other answer", "with [masked]"]) expect(html).toContain(text);
  expect(html).not.toContain("<script");
  expect(html).not.toContain("sk-live");
});

it("says of one whose file is gone that there is nothing, and follows no link", async () => {
  const { folder, home, page } = await run([{ task: "one", name: "One" }], () => says("The answer"));
  const elsewhere = join(home, "elsewhere.jsonl");
  renameSync(join(folder, "One.jsonl"), elsewhere);
  symlinkSync(elsewhere, join(folder, "One.jsonl"));
  const html = transcripts(await page());
  expect(html).toContain("Its session file has no messages, or is gone");
  expect(html).not.toContain("The answer");
});

it("is left out of a session without subagents", async () => {
  const { page } = await run([], () => says("unused"));
  expect(await page()).not.toContain("Subagents (");
});
