// The environment of commands: nothing that asks a person, nothing that is a key of a model provider.

/** Values that keep programs from waiting for a person. */
const nonInteractive: Record<string, string> = {
  CI: "1",
  DEBIAN_FRONTEND: "noninteractive",
  EDITOR: "true",
  GIT_EDITOR: "true",
  GIT_PAGER: "cat",
  GIT_SEQUENCE_EDITOR: "true",
  GIT_TERMINAL_PROMPT: "0",
  // Only reached in a terminal: quits when all is shown and does not complain about a dumb one.
  LESS: "-dEFX",
  MANPAGER: "cat",
  // Without it, it waits for a key at the end of the file.
  MORE: "-e",
  NO_COLOR: "1",
  PAGER: "cat",
  SSH_ASKPASS: "false",
  SSH_ASKPASS_REQUIRE: "force",
  SYSTEMD_PAGER: "cat",
  TERM: "dumb",
  VISUAL: "true",
};

const providers =
  "ANTHROPIC|OPENAI|AZURE_OPENAI|GEMINI|GOOGLE_GENERATIVE_AI|GROQ|CEREBRAS|XAI|OPENROUTER|MISTRAL|DEEPSEEK|FIREWORKS|TOGETHER|COHERE|PERPLEXITY|MINIMAX|MOONSHOT|KIMI|ZAI|AI_GATEWAY|BRAVE|TAVILY|EXA|SERPER|JINA";
const secretName = new RegExp(`^(?:(?:${providers})_(?:API_KEY|AUTH_TOKEN|OAUTH_TOKEN|TOKEN)|CLAUDE_CODE_OAUTH_TOKEN)$`);
/** Our own variables that would reach into a daemon started by a command. */
const ownName = /^MORTISE_(?:RUN|RPC_EMIT_TITLE|OFFLINE_SCRIPT|MAX_FRAME_BYTES)$/;

/** The environment for commands. `secrets` are values that must not be handed on, whatever the variable's name. */
export function shellEnvironment(
  base: NodeJS.ProcessEnv,
  secrets: readonly string[],
  extra: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of Object.keys(base)) {
    const value = base[name];
    if (value === undefined || secretName.test(name) || ownName.test(name)) continue;
    if (value.length >= 8 && secrets.includes(value)) continue;
    env[name] = value;
  }
  return { ...env, ...nonInteractive, ...extra };
}
