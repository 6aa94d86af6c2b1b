// A compiler host for several programs: a file that they have in common is read and bound once, which is most of the work.
import ts from "typescript";

export class SharedSources {
  readonly #files = new Map<string, ts.SourceFile | undefined>();

  host(options: ts.CompilerOptions): ts.CompilerHost {
    const host = ts.createCompilerHost(options);
    // As tsc does: comments of declarations have no part in what is right or wrong.
    host.jsDocParsingMode = ts.JSDocParsingMode.ParseForTypeErrors;
    const { getSourceFile } = host;
    host.getSourceFile = (path, how, ...rest) => {
      // The same declarations are a module or a script, depending on the settings.
      const format = typeof how === "object" ? how.impliedNodeFormat : undefined;
      const id = `${format} ${path}`;
      if (!this.#files.has(id)) this.#files.set(id, getSourceFile(path, how, ...rest));
      return this.#files.get(id);
    };
    return host;
  }
}
