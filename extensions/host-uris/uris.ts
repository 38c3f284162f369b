import { type Context, defineService, ToolError, Uris } from "mortise/extension";

/** Routes `<scheme>://` to whoever owns the scheme. */
export default defineService(Uris, {
  create(service) {
    const { registry } = service;
    const find = (url: string) => {
      const scheme = schemeIn(url);
      const definition = scheme === undefined ? undefined : registry.get("uri scheme", scheme)?.definition;
      if (scheme === undefined || definition === undefined) {
        const known = registry.list("uri scheme").map((entry) => `${entry.name}://`);
        const list = known.length > 0 ? `Registered: ${known.join(", ")}` : "No scheme is registered";
        throw new ToolError(`Unknown protocol: ${scheme ?? url}://. ${list}`);
      }
      // The scheme in lower case, the rest as it came (DESIGN §9 "Host URIs").
      return { scheme, definition, url: scheme + url.slice(scheme.length) };
    };
    return {
      schemeOf: (text: string) => schemeIn(text),
      async read(url: string, ctx: Context) {
        const found = find(url);
        return found.definition.read(found.url, ctx);
      },
      async write(url: string, content: string, ctx: Context) {
        const found = find(url);
        if (found.definition.write === undefined) {
          throw new ToolError(`${found.scheme}:// URLs are read-only; there is no write path for this scheme.`);
        }
        await found.definition.write(found.url, content, ctx);
      },
    };
  },
});

function schemeIn(text: string): string | undefined {
  return /^([a-zA-Z][a-zA-Z0-9+.-]*):\/\//.exec(text)?.[1]?.toLowerCase();
}
