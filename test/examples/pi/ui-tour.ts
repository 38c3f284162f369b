// @ts-nocheck: written for pi, whose types are not installed here
// Every method of `ctx.ui`, one after another.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Key, Text } from "@mariozechner/pi-tui";

export default function (pi: ExtensionAPI) {
  pi.registerShortcut(Key.ctrlShift("t"), { description: "Tour", handler: async () => {} });
  pi.registerMessageRenderer("tour", (message, _options, theme) => new Text(theme.bold(String(message.content)), 0, 0));

  pi.registerCommand("ui-tour", {
    description: "Shows every UI method",
    getArgumentCompletions: (prefix) =>
      ["short", "long"].filter((word) => word.startsWith(prefix)).map((value) => ({ value, label: value })),
    handler: async (args, ctx) => {
      const { ui } = ctx;
      const { select, confirm } = ui;
      ui.setTitle("Tour");
      ui.setStatus("tour", ui.theme.fg("accent", "running"));
      ui.setWidget("tour", ["line 1", ui.theme.bold("line 2")], { placement: "belowEditor" });
      ui.setWidget("drawn", () => new Text("only in a terminal", 0, 0));
      ui.setEditorText(`args: ${args}`);
      ui.setFooter(undefined);
      ui.setWorkingMessage("touring");
      const answers = {
        choice: await select("Pick", ["one", "two"]),
        sure: await confirm("Sure?", "Really?"),
        name: await ui.input("Name", "placeholder"),
        text: await ui.editor("Text", "prefill"),
        late: await ui.confirm("Too late", "No answer", { timeout: 20 }),
        custom: await ui.custom(() => new Text("x", 0, 0)),
        editorText: ui.getEditorText(),
        themes: ui.getAllThemes().length,
        themed: ui.setTheme("dark").success,
        expanded: ui.getToolsExpanded(),
      };
      ui.setWidget("tour", undefined);
      ui.setStatus("tour", undefined);
      ui.notify(JSON.stringify(answers), "info");
    },
  });
}
