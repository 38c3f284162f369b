// Jupyter notebooks as text: each cell with its number, kind and textual output.
import { ToolError, z } from "mortise/extension";

const lines = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => (typeof value === "string" ? value : value.join("")));
const Output = z.looseObject({
  output_type: z.string(),
  text: lines.optional(),
  data: z.record(z.string(), z.unknown()).optional(),
  ename: z.string().optional(),
  evalue: z.string().optional(),
});
const Notebook = z.looseObject({
  cells: z.array(z.looseObject({ cell_type: z.string(), source: lines, outputs: z.array(Output).optional() })),
});

/** @throws {ToolError} when the text is not a notebook; `:raw` then shows it as it is */
export function notebookText(json: string, shown: string): string {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new ToolError(`Cannot read ${shown} as a notebook: it is not JSON; use "${shown}:raw"`, { cause: error });
  }
  const notebook = Notebook.safeParse(value);
  if (!notebook.success) throw new ToolError(`Cannot read ${shown} as a notebook: it holds no cells; use "${shown}:raw"`);
  const cells = notebook.data.cells.map((cell, index) => {
    const outputs = (cell.outputs ?? []).map(outputText).filter((text) => text !== "");
    const shownOutputs = outputs.length > 0 ? `\n--- output\n${outputs.join("\n")}` : "";
    return `=== cell ${index + 1} (${cell.cell_type})\n${cell.source.trimEnd()}${shownOutputs}`;
  });
  return `${cells.join("\n\n")}\n`;
}

function outputText(output: z.infer<typeof Output>): string {
  if (output.text !== undefined) return output.text.trimEnd();
  if (output.ename !== undefined) return `${output.ename}: ${output.evalue ?? ""}`;
  const data = output.data ?? {};
  const plain = lines.safeParse(data["text/plain"]);
  const others = Object.keys(data).filter((type) => type !== "text/plain");
  return [plain.success ? plain.data.trimEnd() : "", others.length > 0 ? `(${others.join(", ")})` : ""]
    .filter((part) => part)
    .join("\n");
}
