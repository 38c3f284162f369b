// Turns one module into a function body: types erased, imports rewritten to calls of injected functions, lines kept. Runs in a
// worker thread because Babel blocks for 300 ms at its first file. Plain JavaScript: a worker of a `.ts` file needs a loader.
import { parentPort } from "node:worker_threads";
import { createJiti } from "jiti";

/** @typedef {{ specifier: string, names: string[], line?: number }} NamedImports */

// Babel warns of what jiti's own plugins do (`export default import.meta.url`); nobody can act on it.
console.warn = () => {};
// Frames alone go to stdout, and the parent does not read this thread's.
process.stdout.write = process.stderr.write.bind(process.stderr);

const jiti = createJiti(import.meta.url, { fsCache: false, moduleCache: false });

/** Replaces what jiti leaves of `import.meta` (aliases, casts) by the injected object; a function body cannot hold it. */
function metaPlugin({ types }) {
  return {
    visitor: {
      MetaProperty(path) {
        if (path.node.meta.name === "import") path.replaceWith(types.identifier("__meta"));
      },
    },
  };
}

/** Collects what has to be checked or prepared before the code runs. Type-only imports are erased by then. */
function collectorPlugin(found) {
  return () => ({
    // Before anything is erased: the dialect of a unit is often only told by a type import.
    pre(file) {
      for (const statement of file.ast.program.body) if (statement.source) found.sources.push(statement.source.value);
    },
    visitor: {
      ImportDeclaration(path) {
        if (path.node.importKind === "type") return;
        const names = [];
        for (const specifier of path.node.specifiers) {
          if (specifier.type === "ImportDefaultSpecifier") names.push("default");
          else if (specifier.type === "ImportSpecifier" && specifier.importKind !== "type") {
            names.push(specifier.imported.name ?? specifier.imported.value);
          }
        }
        found.imports.push({ specifier: path.node.source.value, names, line: path.node.loc?.start.line });
      },
      "ExportNamedDeclaration|ExportAllDeclaration"(path) {
        if (path.node.source && path.node.exportKind !== "type") {
          found.imports.push({ specifier: path.node.source.value, names: [] });
        }
      },
      CallExpression(path) {
        const [argument] = path.node.arguments;
        if (path.node.callee.type !== "Identifier" || path.node.callee.name !== "require") return;
        if (argument?.type === "StringLiteral") found.requires.push(argument.value);
      },
    },
  });
}

/** ESM lets two `export *` carry one name; Babel's check would define it twice and throw. */
function allowRepeatedStars(code) {
  return code.replace(/if \(key in exports && exports\[key\] === \w+\[key\]\) return;/g, "if (key in exports) return;");
}

const failureMark = "exports.__JITI_ERROR__ = ";

function transform({ source, filename, async }) {
  const found = {
    imports: /** @type {NamedImports[]} */ ([]),
    requires: /** @type {string[]} */ ([]),
    sources: /** @type {string[]} */ ([]),
  };
  const code = jiti.transform({
    source: source.replace(/^\uFEFF?(#!.*)?/, ""),
    filename,
    async,
    ts: /\.[cm]?tsx?$/.test(filename),
    jsx: /\.[jt]sx$/.test(filename),
    retainLines: true,
    interopDefault: false,
    babel: { plugins: [metaPlugin, collectorPlugin(found)] },
  });
  const body = code.trimStart();
  if (!body.startsWith(failureMark)) return { code: allowRepeatedStars(code), ...found };
  const failure = JSON.parse(body.slice(failureMark.length).trim().replace(/;$/, ""));
  return { error: { message: String(failure.message).trim(), line: failure.line, column: failure.column } };
}

function answer(request) {
  try {
    return transform(request);
  } catch (error) {
    return { error: { message: error instanceof Error ? error.message : String(error) } };
  }
}

/** Where the conditions of `import` lead; the parent thread only knows those of `require`. */
function resolve({ specifier, parent }) {
  try {
    const url = jiti.esmResolve(specifier, { parentURL: parent, conditions: ["node", "import"], try: true });
    return { url: url ?? null };
  } catch (error) {
    return { error: { message: error instanceof Error ? error.message : String(error) } };
  }
}

parentPort?.on("message", (request) => {
  const result = request.kind === "resolve" ? resolve(request) : answer(request);
  if (!request.wake) return parentPort?.postMessage({ id: request.id, ...result });
  // The parent waits without its event loop: the answer must be in the port before it is woken.
  request.port.postMessage(result);
  Atomics.store(request.wake, 0, 1);
  Atomics.notify(request.wake, 0);
});
