// xcache completion: prints the script with which a shell calls `xcache complete` for the word at the cursor.
// The first line of each reply says what follows: `words`, `parts` (prefixes that can be completed further) or `files`
// (the shell completes file names itself). Keys and tags are untrusted text: they are inserted quoted, never executed.

import type { CommandContext, CommandInput } from "../command-spec.ts";
import { CommandError, EXIT, type ExitCode } from "../exit-code.ts";

/** Bash neither quotes candidates nor keeps colons inside words, so it passes the raw line and gets raw text back. */
const BASH = `# xcache completion for bash: eval "$(xcache completion bash)"
_xcache() {
  local kind line
  COMPREPLY=()
  {
    IFS= read -r kind
    while IFS= read -r line; do COMPREPLY+=("$line"); done
  } < <(xcache complete --bash-breaks "$COMP_WORDBREAKS" -- "\${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
  case $kind in
    files) compopt -o default 2>/dev/null ;;
    parts) compopt -o nospace 2>/dev/null ;;
  esac
}
complete -F _xcache xcache
`;

/** Zsh: compadd quotes its arguments. */
const ZSH = `#compdef xcache
# xcache completion for zsh: eval "$(xcache completion zsh)"
_xcache() {
  local -a found
  found=("\${(@f)$(xcache complete -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  case \${found[1]} in
    files) compset -P '--*='; _files ;;
    parts) compadd -S '' -- "\${(@)found[2,-1]}" ;;
    words) compadd -- "\${(@)found[2,-1]}" ;;
  esac
}
if [[ \${funcstack[1]} == _xcache ]]; then
  _xcache "$@"
else
  compdef _xcache xcache
fi
`;

/** Fish quotes candidates itself and appends no space after a colon, a slash or a dot. */
const FISH = `# xcache completion for fish: xcache completion fish > ~/.config/fish/completions/xcache.fish
function __xcache_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l word (string unescape -- "$typed" 2>/dev/null; or string trim -l -c "'\\"" -- "$typed")
    set -l found (xcache complete -- $words[2..-1] "$word" 2>/dev/null)
    if test "$found[1]" = files
        __fish_complete_path "$word"
    else if set -q found[2]
        printf '%s\\n' $found[2..-1]
    end
end
complete -c xcache -f -a "(__xcache_complete)"
`;

const COMPLETION_SCRIPTS: ReadonlyMap<string, string> = new Map([
  ["bash", BASH],
  ["zsh", ZSH],
  ["fish", FISH],
]);

export async function run({ out }: CommandContext, { args }: CommandInput): Promise<ExitCode> {
  const shell = args[0] ?? "";
  const script = COMPLETION_SCRIPTS.get(shell);
  if (script === undefined) {
    const shells = [...COMPLETION_SCRIPTS.keys()].join(", ");
    throw new CommandError(`no completion script for ${JSON.stringify(shell)}`, `Use one of ${shells}.`);
  }
  if (out.json) await out.jsonLine({ shell, script });
  else await out.bytes(script);
  return EXIT.ok;
}
