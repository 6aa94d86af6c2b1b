// What each shell needs to ask us what can stand at the cursor. We answer with what the lines that follow are:
// `words`, `parts` (whole words go on behind them), or `files` (the shell knows the names); then a candidate a line.
// Keys and tags are anybody's text: they go back to the line quoted, so that nothing in them is ever run.

/** Bash quotes nothing and splits words at colons, so we are given the line as it is typed and answer as it is typed. */
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

/** Zsh quotes what compadd is given. */
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

/** Fish quotes by itself, and puts no blank behind a colon, a slash or a dot. */
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

export const COMPLETION_SCRIPTS: ReadonlyMap<string, string> = new Map([
  ["bash", BASH],
  ["zsh", ZSH],
  ["fish", FISH],
]);
