// /login and /logout.
import { CommandError, type Context, Credentials, defineSlashCommand, errorMessage, Models } from "mortise/extension";
import { runLogin } from "./_login.ts";

const login = defineSlashCommand({
  name: "login",
  description: "Log in to a provider of models, or show where one is logged in",
  argumentHint: "[provider | status]",
  subcommands: [{ name: "status", usage: "status", description: "List the providers and whether a credential of each is known" }],
  source: "builtin",
  concurrency: "concurrent",
  async run(ctx, args) {
    if (args === "status") return ctx.output(status(ctx));
    const provider = args || (await ask(ctx, "Log in to", flows(ctx)));
    if (provider === undefined) {
      ctx.output(`Name a provider: ${flows(ctx).join(", ")}`);
      return;
    }
    try {
      await runLogin(ctx, provider);
      ctx.output(`Logged in to ${provider}`);
    } catch (error) {
      if (!CommandError.is(error)) throw error;
      ctx.output(`Not logged in: ${errorMessage(error)}`);
    }
  },
});

const logout = defineSlashCommand({
  name: "logout",
  description: "Forget the stored credential of a provider",
  argumentHint: "[provider]",
  source: "builtin",
  concurrency: "concurrent",
  async run(ctx, args) {
    const credentials = ctx.use(Credentials);
    const stored = credentials.list();
    const provider = args || (stored.length > 0 ? await ask(ctx, "Log out of", stored) : undefined);
    if (provider === undefined) {
      ctx.output(stored.length === 0 ? "No credentials are stored" : `Name a provider: ${stored.join(", ")}`);
      return;
    }
    if (!(await credentials.remove(provider))) {
      ctx.output(`No credential of ${provider} is stored`);
      return;
    }
    const rest = ctx.tryUse(Models)?.hasKey(provider) ? "; the environment or models.yml still has one" : "";
    ctx.output(`Logged out of ${provider}${rest}`);
  },
});

export default [login, logout];

/** Also providers without a login flow, whose key stands in a file of the user's. */
function status(ctx: Context): string {
  const models = ctx.tryUse(Models);
  const stored = new Set(ctx.tryUse(Credentials)?.list());
  const names = [...new Set([...flows(ctx), ...stored])].sort();
  if (names.length === 0) return "There is no provider to log in to";
  const width = Math.max(...names.map((name) => name.length));
  const lines = names.map((name) => {
    const known = models?.hasKey(name) === true;
    const state = stored.has(name) ? "logged in" : known ? "logged in by the environment or models.yml" : "not logged in";
    return `${name.padEnd(width)}  ${state}`;
  });
  return lines.join("\n");
}

function flows(ctx: Context): string[] {
  return ctx.registry.list("login flow").map(({ name }) => name);
}

async function ask(ctx: Context, title: string, options: string[]): Promise<string | undefined> {
  const answer = await ctx.ui.call("select", { title, options });
  return typeof answer === "string" ? answer : undefined;
}
