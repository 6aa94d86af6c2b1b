// What each shell needs to ask us what can stand at the cursor. We answer one candidate a line; a last line
// `:files` asks for the names of files instead.

/** Bash splits words at colons, which keys are full of: we get the words joined again and give back the end only. */
const BASH = `# xcache completion for bash: eval "$(xcache completion bash)"
_xcache() {
  local cur prev words cword line
  if declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref -n : cur prev words cword
  else
    words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=\${COMP_WORDS[COMP_CWORD]}
    while [[ $cword -gt 1 && ( $cur == :* || \${words[cword-1]} == *: || \${words[cword-1]} == ":" ) ]]; do
      cur=\${words[cword-1]}$cur
      words=("\${words[@]:0:cword-1}" "$cur")
      cword=$((cword-1))
    done
  fi
  COMPREPLY=()
  local colon=""
  if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then colon=\${cur%"\${cur##*:}"}; fi
  while IFS= read -r line; do
    if [[ $line == ":files" ]]; then
      compopt -o default 2>/dev/null
      COMPREPLY=()
      return
    fi
    COMPREPLY+=("\${line#"$colon"}")
  done < <(xcache complete -- "\${words[@]:1:cword}" 2>/dev/null)
}
complete -F _xcache xcache
`;

const ZSH = `#compdef xcache
# xcache completion for zsh: eval "$(xcache completion zsh)"
_xcache() {
  local -a found
  found=("\${(@f)$(xcache complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${found[-1]} == ":files" ]]; then
    _files
  else
    compadd -- "\${(@)found:#}"
  fi
}
compdef _xcache xcache
`;

const FISH = `# xcache completion for fish: xcache completion fish > ~/.config/fish/completions/xcache.fish
function __xcache_complete
    set -l words (commandline -opc)[2..-1] (commandline -ct)
    for line in (xcache complete -- $words 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c xcache -f -a "(__xcache_complete)"
`;

export const COMPLETION_SCRIPTS: ReadonlyMap<string, string> = new Map([
  ["bash", BASH],
  ["zsh", ZSH],
  ["fish", FISH],
]);
