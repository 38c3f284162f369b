// The smallest extension: one tool for the model. Save it as ~/.mortise/extensions/hello.ts and it is there.
import { defineTool, z } from "mortise/extension";

export default defineTool({
  name: "hello",
  description: "Greets somebody by name.",
  params: z.object({ name: z.string().describe("Whom to greet") }),
  run: (_ctx, { name }) => `Hello, ${name}!`,
});
