"""What the commands' pages of help show: what each command is for, and calls of it as one types them.

The files named here are those of fixture `folder` in tests/server/test_help.py, which runs or parses each.
"""

from dataclasses import dataclass

PANELS = {
    "Start here": ("convert", "validate", "doctor"),
    "Prove": ("audit", "benchmark", "sweep"),
    "Look closer": ("inspect", "docs", "device"),
    "Set up": ("install", "serve", "completion"),
}
"""The commands of the program, by what they are for."""


@dataclass(frozen=True)
class Example:
    """A call, and what it does."""

    typed: str
    does: str


_EXAMPLES = r"""
[]
doctor  # Check that everything needed is installed.
convert model.py:gelu_bias  # Draft, prove and time a kernel for one function.
validate kernel.py  # Prove that a kernel computes what its reference does.
[convert]
convert model.py:gelu_bias  # All three stages at once, into converted/gelu_bias.
convert start model.py:gelu_bias  # Step by step: write a stage-1 file to sessions/gelu_bias.
convert submit sessions/gelu_bias  # Run the gate of its current stage.
[convert all]
convert model.py:gelu_bias  # All three stages, into converted/gelu_bias.
convert model.py:scale --input 'x=float32[M,N]' --dim M=1,7,64 --dim N=1,33,1000  # Declare inputs in a call.
convert model.py:Norm --init dim=64 --backward  # A module, with its gradients.
convert model.py:gelu_bias --at M=8192,N=4096  # Tuned and timed at the sizes at which it is used.
[convert start]
convert start model.py:gelu_bias  # Write a stage-1 file to sessions/gelu_bias.
convert start model.py:scale --example call.py:main  # Take the inputs from your own call.
[convert submit]
convert submit sessions/gelu_bias  # Run the gate of the current stage on the session's file.
convert submit sessions/gelu_bias --file kernel.py --through 3  # Submit another file, to all three gates.
convert submit sessions/gelu_bias --accept 'as fast, and shorter'  # Let a stage pass that is not faster.
[convert status]
convert status sessions/gelu_bias  # What was understood, every attempt, and what is next.
convert status sessions/gelu_bias --json  # The same for a program.
[convert list]
convert list  # The sessions below ./sessions.
convert list --below ~/work/sessions  # Those of another folder.
[convert restore]
convert restore sessions/gelu_bias 2  # Make the file of attempt 2 the stage's file again.
convert status sessions/gelu_bias  # See the attempts and their numbers first.
[convert finish]
convert finish sessions/gelu_bias --dry-run  # Only say what would be written.
convert finish sessions/gelu_bias --into src/kernels  # Write the kernel, its tests and a report.
[convert drop]
convert drop sessions/gelu_bias  # Remove a session with all its attempts.
convert list  # See which sessions there are.
[validate]
validate kernel.py  # A kernel file, against the reference in it.
validate kernel.py:run --reference model.py:gelu_bias  # Against a function elsewhere.
validate kernel.py --seed 7 --case 'M=7 N=33'  # One case again, on the same inputs.
[benchmark]
benchmark kernel.py --dim M=8192 --dim N=4096  # Time it on the GPU at one size.
benchmark kernel.py --against other.py  # Beside another implementation as well.
benchmark kernel.py --estimate H200  # The limit of a GPU that is not here.
[sweep]
sweep kernels --phase validate,audit  # Every kernel file of a folder; run again, it goes on.
sweep pairs.jsonl --jobs 8 --into results  # Problems and candidates, eight at once.
sweep kernels --against benchmarks/sweep --into after  # What has changed since an earlier sweep.
[audit]
audit kernel.py  # Read, compile and run a kernel file.
audit kernels --evidence source  # Read a folder; nothing is executed.
audit kernels --into audit.sarif --fail-on high  # A document for a code host, in CI.
[inspect]
inspect kernel.py --arch sm_90  # Registers, spills, occupancy on an H100, without one.
inspect kernel.py --arch gfx942 --dim N=1000  # On an MI300X, at one size.
inspect kernel.py --text ptx  # The first page of the assembly.
[docs]
docs search 'load with boundary'  # Find a name, a guide or a rule.
docs read tl.load  # What the installed Triton says about a name.
[docs search]
docs search 'load with boundary'  # Names and guides, the best first.
docs search make_block_ptr  # What to write instead of a name that is gone.
docs search mask --source guide --limit 3  # Only guides, at most three.
[docs read]
docs read tl.load  # A name of the installed Triton.
docs read guides/stability  # A guide.
docs read rules/access_without_mask  # A rule of audit.
[docs fetch]
docs fetch  # Fetch the public pages; a second call fetches what has changed.
docs fetch --refresh  # Check again pages that were checked today.
[docs status]
docs status  # Which documentation there is, and how old it is.
docs status --json  # The same for a program.
[device]
device  # Which GPUs, torch and Triton this machine has.
device --json  # The same for a program.
[doctor]
doctor  # Check everything; say how to fix what is wrong.
doctor --json  # The same for a program; exit status 3 if anything failed.
doctor --python ~/venv/bin/python  # Check another environment's torch and Triton.
[install]
install --client cursor  # Add the server to Cursor's configuration.
install --client zed --dry-run  # Show what would change, as a diff.
install --client vscode --scope project  # Only for the project in the current folder.
install --client codex --remove  # Remove the entry again.
[serve]
serve  # Over stdin and stdout, as assistants start it.
serve --http --port 8931  # Over HTTP on this machine.
[completion]
completion bash  # In ~/.bashrc: eval "$(pytorch-to-triton completion bash)"
completion zsh > ~/.zfunc/_pytorch-to-triton  # With ~/.zfunc in fpath before compinit runs.
completion fish > ~/.config/fish/completions/pytorch-to-triton.fish  # fish finds it there.
"""
"""Below each command in brackets its calls, without the program's name; the program's own below none."""


EXAMPLES = {
    command: tuple(
        Example(f"pytorch-to-triton {typed}", does)
        for typed, _, does in (line.partition("  # ") for line in calls.strip().splitlines())
    )
    for command, _, calls in (block.partition("]") for block in _EXAMPLES.split("\n[")[1:])
}
"""By command, as `docs search`; the program's own by the empty name."""
