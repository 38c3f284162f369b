// @ts-nocheck: written for pi, whose types are not installed here
// A grown extension as people keep it for themselves: it guards the shell, cleans what tools answer, spells out short prompts,
// counts words with progress, keeps a status line, and has a command that asks in every way there is.
import { type ExtensionAPI, isToolCallEventType } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

const VERSION = 0;
const DANGEROUS = [/\brm\s+-\w*r/, /\bmkfs\b/, /\bgit\s+push\b.*--force/];
const SECRET = /\btok_\w+/g;
const TOLD = [
  "agent_start",
  "turn_start",
  "tool_execution_start",
  "tool_execution_end",
  "turn_end",
  "agent_end",
  "agent_settled",
];

export default function (pi: ExtensionAPI) {
  pi.registerFlag("tone", { type: "string", default: "short", description: "How prompts that start with ?? are spelled out" });

  pi.on("session_start", (event, ctx) => ctx.ui.setStatus("workshop", `Version ${VERSION} after ${event.reason}`));
  pi.on("session_shutdown", (event, ctx) => ctx.ui.notify(`Version ${VERSION} ends: ${event.reason}`, "info"));
  for (const name of TOLD) {
    pi.on(name, (_event, ctx) => ctx.ui.setStatus("workshop", ctx.ui.theme.fg("dim", `Version ${VERSION}: ${name}`)));
  }

  pi.on("input", (event) => {
    if (!event.text.startsWith("??")) return { action: "continue" };
    return {
      action: "transform",
      text: `${event.text.slice(2).trim()} (a ${pi.getFlag("tone")} answer, says version ${VERSION})`,
    };
  });

  pi.on("before_agent_start", (event) => ({ systemPrompt: `${event.systemPrompt}\n\nWorkshop rules of version ${VERSION}` }));

  pi.on("context", (event) => {
    const note = {
      role: "user",
      content: [{ type: "text", text: `Workshop note of version ${VERSION}` }],
      timestamp: Date.now(),
    };
    return { messages: [note, ...event.messages] };
  });

  pi.on("tool_call", async (event, ctx) => {
    if (!isToolCallEventType("bash", event)) return undefined;
    const { command } = event.input;
    if (!DANGEROUS.some((pattern) => pattern.test(command))) return undefined;
    const choice = await ctx.ui.select(`Version ${VERSION} found a dangerous command: ${command}`, ["Run it", "Refuse"]);
    return choice === "Run it" ? undefined : { block: true, reason: `Refused by version ${VERSION}` };
  });

  pi.on("tool_result", (event) => {
    if (event.toolName !== "bash") return undefined;
    const content = event.content.map((part) =>
      part.type === "text" ? { ...part, text: part.text.replace(SECRET, "tok_…") } : part,
    );
    return { content: [...content, { type: "text", text: `cleaned by version ${VERSION}` }] };
  });

  pi.registerTool({
    name: "count_words",
    label: "Count words",
    description: "Counts the words of each line",
    parameters: Type.Object({ lines: Type.Array(Type.String(), { description: "The lines" }) }),
    async execute(_toolCallId, params, signal, onUpdate, ctx) {
      let words = 0;
      for (const [index, line] of params.lines.entries()) {
        if (signal?.aborted) throw new Error("Stopped");
        words += line.split(/\s+/).filter(Boolean).length;
        onUpdate?.({ content: [{ type: "text", text: `version ${VERSION}: ${words} words` }], details: { line: index + 1 } });
        ctx.ui.setStatus("workshop.count", `Version ${VERSION}: line ${index + 1}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      ctx.ui.setStatus("workshop.count", undefined);
      return { content: [{ type: "text", text: `version ${VERSION} counted ${words} words` }], details: { words } };
    },
  });

  pi.registerCommand("workshop", {
    description: "Asks in every way there is",
    handler: async (args, ctx) => {
      const { ui } = ctx;
      ui.setTitle(`Workshop ${VERSION}`);
      ui.setWidget("workshop", [`Version ${VERSION}`, ui.theme.bold(args)], { placement: "belowEditor" });
      ui.setEditorText(`text of version ${VERSION}`);
      ui.pasteToEditor("pasted");
      const stop = new AbortController();
      const answers = {
        version: VERSION,
        choice: await ui.select("Pick", ["red", "green"]),
        sure: await ui.confirm("Sure?", `Version ${VERSION} asks`),
        name: await ui.input("Name", "first name"),
        text: await ui.editor("Text", "prefilled"),
        late: await ui.input("Too late", undefined, { timeout: 30 }),
        withdrawn: await Promise.all([
          ui.confirm("Withdrawn", "Nobody has to answer", { signal: stop.signal }),
          new Promise((resolve) => setTimeout(resolve, 10)).then(() => stop.abort()),
        ]).then(([answer]) => answer),
      };
      ui.setWidget("workshop", undefined);
      for (const level of ["info", "warning", "error"]) ui.notify(JSON.stringify(answers), level);
    },
  });
}
