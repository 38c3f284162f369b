// `followService`: a unit that is live before the service it needs, and stays when that one is replaced or goes.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { createToken, defineExtension, followService } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

interface Word {
  readonly word: string;
}
const provider = (word: string) => `
import { createToken, defineService } from "mortise/extension";
export default defineService(createToken("late word"), { create: () => ({ word: "${word}" }) });
`;

it("connects when the service comes, with each that takes its place, and undoes what went before", async () => {
  const told: string[] = [];
  let wake: () => void = () => {};
  const next = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  const tell = (what: string) => {
    told.push(what);
    wake();
  };
  const follower = defineExtension({
    name: "follower",
    setup: (scope) =>
      followService(scope, createToken<Word>("late word"), ({ word }) => {
        tell(`connect ${word}`);
        return () => tell(`undo ${word}`);
      }),
  });
  const d = await startDaemon({ extensions: { follower: [[follower]] } });
  daemon = d;
  expect(told).toEqual([]);
  for (const word of ["one", "two"]) {
    const connected = next();
    d.write("extensions/late.ts", provider(word));
    await connected;
    if (!told.includes(`connect ${word}`)) await next();
  }
  expect(told).toEqual(["connect one", "undo one", "connect two"]);
  const gone = next();
  rmSync(join(d.home, "extensions/late.ts"));
  await gone;
  expect(told.at(-1)).toBe("undo two");
  const back = next();
  d.write("extensions/late.ts", provider("three"));
  await back;
  await d.stop();
  daemon = undefined;
  expect(told.slice(4)).toEqual(["connect three", "undo three"]);
});
