// /new-component: several dialogs in a row. Each gives `undefined` (or false) when the person cancels or nobody can answer.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { defineSlashCommand } from "mortise/extension";

const STYLES = ["function", "class"];

export default defineSlashCommand({
  name: "new-component",
  description: "Creates a component by asking what it should be",
  async run(ctx) {
    const { cwd } = ctx.conversation;
    const style = await ctx.ui.select({ title: "What kind of component?", options: STYLES });
    if (style === undefined) return ctx.output("Nothing was created");
    const name = await ctx.ui.input({ title: "Its name?", placeholder: "Button" });
    if (name === undefined || !/^[A-Z]\w*$/.test(name)) return ctx.output("Nothing was created: the name must be like Button");
    const source = await ctx.ui.editor({
      title: `${name}.ts`,
      prefill: `export ${style} ${name} ${style === "class" ? "" : "() "}{}\n`,
    });
    if (source === undefined) return ctx.output("Nothing was created");
    const sure = await ctx.ui.confirm({ title: "Create it?", message: join("components", `${name}.ts`) });
    if (!sure) return ctx.output("Nothing was created");

    await mkdir(join(cwd, "components"), { recursive: true });
    await writeFile(join(cwd, "components", `${name}.ts`), source);
    // Notices wait for nobody.
    void ctx.ui.notify({ message: `Created ${name}`, notifyType: "info" });
    void ctx.ui.setStatus({ statusKey: "components", statusText: `Last: ${name}` });
  },
});
