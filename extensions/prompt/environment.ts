import { arch, type as osType, release } from "node:os";
import { definePromptSection } from "mortise/extension";

/** The date without the time of day, so that the text is the same all day and caches hold. */
export default definePromptSection({
  name: "environment",
  order: 10,
  stable: false,
  render: (ctx) =>
    [
      "Environment",
      `- Working directory: ${ctx.conversation.cwd}`,
      `- Date: ${localDate(new Date())}`,
      `- System: ${osType()} ${release()} (${arch()})`,
    ].join("\n"),
});

function localDate(date: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
