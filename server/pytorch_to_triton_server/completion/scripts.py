"""The scripts that a shell loads; at every press of Tab they ask the program."""

SCRIPTS = {
    "bash": r"""_pytorch_to_triton() {
    # The answers end with the space that is to follow; what may go on, such as a folder, has none.
    local IFS=$'\n'
    COMPREPLY=($("$1" __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null))
}
complete -o nospace -F _pytorch_to_triton pytorch-to-triton
""",
    "zsh": r"""#compdef pytorch-to-triton
_pytorch_to_triton() {
    local value text
    local -a whole whole_shown begun begun_shown
    while IFS=$'\t' read -r value text; do
        if [[ $value == *(/|=|.py) ]]; then
            begun+=("$value") begun_shown+=("$value${text:+  -- $text}")
        else
            whole+=("$value") whole_shown+=("$value${text:+  -- $text}")
        fi
    done < <("${(Q)words[1]}" __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    (( $#whole )) && compadd -l -d whole_shown -a whole
    (( $#begun )) && compadd -S '' -l -d begun_shown -a begun
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _pytorch_to_triton "$@"
else
    compdef _pytorch_to_triton pytorch-to-triton
fi
""",
    "fish": r"""function __pytorch_to_triton_complete
    set -l words (commandline -opc)
    set -l begun (commandline -ct)
    $words[1] __complete fish $words[2..-1] "$begun" 2>/dev/null
end
complete -c pytorch-to-triton -f -a '(__pytorch_to_triton_complete)'
""",
}
"""By shell."""
