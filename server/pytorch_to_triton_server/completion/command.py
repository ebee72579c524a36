"""The scripts that a shell loads for completion, and the command that prints them.

At every press of Tab they ask the program. typer's own for bash loses what follows a colon, and none
of its own goes on behind a folder.
"""

import json as plain_json
from typing import Annotated, Literal

import typer

from pytorch_to_triton_server.help_page import AsJson

ASK = "__complete"
"""The command that answers, one word and its meaning a line; no page of help lists it."""
SCRIPTS = {
    "bash": r"""_pytorch_to_triton() {
    # The answers end with the space that is to follow; what may go on, such as a folder, has none.
    local line="${COMP_LINE:0:COMP_POINT}" value space
    local word="${line##* }"
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        # Where a colon parts words, only what is behind the last one is replaced.
        [[ $COMP_WORDBREAKS == *:* ]] && value="${value#"${word%"${word##*:}"}"}"
        space=' '
        [[ $value == */ || $value == *= || $value == *.py ]] && space=
        [[ $value == *[^[:alnum:]_./:=,+@%-]* ]] && value="${value@Q}"
        COMPREPLY+=("$value$space")
    done < <(_TYPER_COMPLETE_ARGS="$line" "$1" __complete 2>/dev/null)
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
    done < <(_TYPER_COMPLETE_ARGS="${words[1,CURRENT]}" "${(Q)words[1]}" __complete 2>/dev/null)
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
    _TYPER_COMPLETE_ARGS=(commandline -cp | string collect) $words[1] __complete 2>/dev/null
end
complete -c pytorch-to-triton -f -a '(__pytorch_to_triton_complete)'
""",
}
"""By shell."""


def completion(
    *,
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell: bash, zsh or fish.")],
    json: AsJson = False,
) -> None:
    """Print a script that lets your shell complete commands, options and their values.

    It completes files and the functions in them, GPUs, sessions, rules and pages. Changes no file: the
    examples show where the script goes.
    """
    script = SCRIPTS[shell]
    print(plain_json.dumps({"shell": shell, "script": script}, indent=2) + "\n" if json else script, end="")
