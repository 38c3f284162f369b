import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { defineUriScheme, ToolError } from "mortise/extension";

/** Full outputs of earlier calls of this conversation, by the number in `artifactId`; kept as `<id>.<tool>.log`. */
export default defineUriScheme({
  name: "artifact",
  description: "Complete outputs that were too long for a result, e.g. artifact://3",
  immutable: true,
  async read(url, ctx) {
    const id = /^artifact:\/\/(\d+)\/?$/.exec(url)?.[1];
    if (id === undefined) throw new ToolError(`Cannot read "${url}": expected artifact://<number>, e.g. artifact://3`);
    const { dir } = ctx.conversation.log.artifacts;
    const names = dir === undefined ? [] : await readdir(dir).catch(() => []);
    const name = names.find((each) => each.startsWith(`${id}.`) && each.endsWith(".log"));
    if (dir === undefined || name === undefined) {
      const known = names.flatMap((each) => /^(\d+)\..*\.log$/.exec(each)?.[1] ?? []).sort((a, b) => Number(a) - Number(b));
      const list = known.length === 0 ? "there are none so far" : `there are: ${known.slice(-20).join(", ")}`;
      throw new ToolError(
        `No artifact has the number ${id} in this conversation (the oldest are removed when all take more than artifacts.maxBytes); ${list}`,
      );
    }
    const file = join(dir, name);
    const { size } = await stat(file);
    return { content: "", file, contentType: "text/plain", notes: size === 0 ? ["The output is empty"] : [], immutable: true };
  },
});
