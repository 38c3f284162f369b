// Runs every transcript of this folder against a daemon. A transcript is lines:
//   # prose; the first line says what the transcript shows
//   @ {"modes": […], "options": {…}, "files": {…}, "built": true}   how to start; with `built` the built daemon plays it as well
//   > {…}    a frame the host sends (a line that is no JSON is sent as it is)
//   > <eof>  the host closes its end, and the daemon ends
//   < {…}    a frame that comes, in this order; frames between are allowed, fields not named as well
//   <~ {…}   a frame that comes anywhere from here to the next `>`, in any order
//   ! {…}    a frame that never comes in the whole transcript
// In frames "<any>" fits every value and "$name" binds a value the first time and stands for it afterwards.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, it } from "vitest";
import { type StartOptions, startDaemon } from "../../core/testing.ts";
import { startProcess } from "../support/process.ts";
import { linesOf, play } from "./_play.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));

interface Setup extends StartOptions {
  modes?: ("rpc" | "rpc-ui")[];
  built?: boolean;
}

for (const file of readdirSync(folder)
  .filter((name) => name.endsWith(".jsonl"))
  .sort()) {
  const lines = linesOf(readFileSync(join(folder, file), "utf8"));
  const title = lines.find((line) => line.startsWith("# "))?.slice(2) ?? file;
  const setup = JSON.parse(lines.find((line) => line.startsWith("@ "))?.slice(2) ?? "{}") as Setup;
  describe(file, () => {
    for (const mode of setup.modes ?? ["rpc"]) {
      it(`${title} (${mode})`, async () => {
        const daemon = await startDaemon({ ...setup, options: { ...setup.options, mode } });
        try {
          await play(Object.assign(daemon, { end: () => daemon.daemon.close("ended") }), lines);
        } finally {
          await daemon.stop();
        }
      });
      it.runIf(setup.built)(`${title} (${mode}, built)`, { timeout: 60_000 }, async () => {
        const daemon = startProcess({ mode, files: setup.files ?? {}, model: setup.options?.model });
        try {
          await play(daemon, lines);
        } finally {
          await daemon.dispose();
        }
      });
    }
  });
}
