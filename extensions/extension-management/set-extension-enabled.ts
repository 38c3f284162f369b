import { CommandError, defineCommand, Extensions, UnitInfo, z } from "mortise/extension";

export default defineCommand({
  name: "set_extension_enabled",
  group: "Extensions",
  summary:
    "Takes an extension out, or back in, until the daemon ends. Calls that run finish; what it hid answers again in the same step.",
  // Bringing one back waits for code that is not ours.
  concurrency: "concurrent",
  sealed: true,
  source: "mortise",
  params: z.object({ extensionId: z.string().min(1).describe("Id or name"), enabled: z.boolean() }),
  result: z.object({ extension: UnitInfo }),
  example: {
    params: { extensionId: "/home/ada/.mortise/extensions/lint.ts", enabled: false },
    result: {
      extension: {
        id: "/home/ada/.mortise/extensions/lint.ts",
        name: "lint",
        origin: "user",
        state: "disabled",
        path: "/home/ada/.mortise/extensions/lint.ts",
        generation: 0,
        contributes: [],
        shadows: [],
        shadowedBy: [],
        files: ["/home/ada/.mortise/extensions/lint.ts"],
        timings: { resolve: 0.4, transpile: 9.1, evaluate: 11.8, setup: 0.2, swap: 0.1 },
        handlers: { calls: 14, p95Ms: 1.5 },
        errors: 0,
      },
    },
    failure: 'No extension is called "lint"',
  },
  async run(ctx, { extensionId, enabled }) {
    const extensions = ctx.use(Extensions);
    const found = (wanted: string) =>
      extensions.list().find((unit) => unit.id === wanted) ?? extensions.list().find((unit) => unit.name === wanted);
    const known = found(extensionId);
    if (known === undefined) throw new CommandError(`No extension is called "${extensionId}"`, "not_found");
    if (known.state === "untrusted") {
      throw new CommandError(`"${known.name}" belongs to a project that is not trusted; start with --trust to use it`);
    }
    await extensions.setEnabled(known.id, enabled);
    const changed = found(known.id);
    if (changed === undefined) throw new CommandError(`"${known.name}" was removed meanwhile`, "not_found");
    return { extension: changed };
  },
});
